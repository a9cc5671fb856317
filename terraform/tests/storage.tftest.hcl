# The five buckets: closed, encrypted, and each with the lifetime of what it holds.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id            = "example-project"
  location              = "europe-west4"
  prefix                = "example"
  kms_key               = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
  staging_days          = 14
  work_days             = 60
  reject_days           = 90
  raw_cold              = { days = 30, storage_class = "NEARLINE" }
  soft_delete_days      = 30
  corpus_retention_days = 0
}

run "buckets" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition     = join(" ", sort(keys(google_storage_bucket.this))) == "corpus raw rejects staging work"
    error_message = "raw, staging, work, corpus and rejects are the buckets."
  }

  assert {
    condition     = google_storage_bucket.this["corpus"].name == "example-corpus"
    error_message = "Names are PREFIX-PURPOSE."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : b.uniform_bucket_level_access])
    error_message = "Access is by IAM alone in every bucket."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : b.public_access_prevention == "enforced"])
    error_message = "No bucket can be made public by mistake."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : b.encryption[0].default_kms_key_name == var.kms_key])
    error_message = "Every bucket is encrypted with our key."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : !b.force_destroy])
    error_message = "No bucket is emptied to be destroyed."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : upper(b.location) == "EUROPE-WEST4"])
    error_message = "Every bucket is in the region of the workers."
  }

  assert {
    condition = alltrue([
      for b in google_storage_bucket.this : contains([for r in b.lifecycle_rule : one(r.action).type], "AbortIncompleteMultipartUpload")
    ])
    error_message = "Half uploads are cleared in every bucket."
  }

  assert {
    condition = alltrue([
      for purpose in ["raw", "staging", "work", "rejects"] :
      google_storage_bucket.this[purpose].soft_delete_policy[0].retention_duration_seconds == 0
    ])
    error_message = "What is temporary, or kept as an old version, is not paid for once more after it was deleted."
  }

  assert {
    condition     = google_storage_bucket.this["corpus"].soft_delete_policy[0].retention_duration_seconds == 30 * 86400
    error_message = "What was deleted from the corpus can be restored for 30 days."
  }

  assert {
    condition     = [for purpose, b in google_storage_bucket.this : purpose if b.versioning[0].enabled] == ["raw"]
    error_message = "Versions are kept of what people upload, and of nothing else."
  }

  assert {
    condition = {
      for purpose, b in google_storage_bucket.this : purpose => [
        for r in b.lifecycle_rule : one(r.condition).age
        if one(r.action).type == "Delete" ? one(r.condition).with_state == "ANY" : false
      ]
    } == { corpus = [], raw = [], rejects = [90], staging = [14], work = [60] }
    error_message = "staging, work and rejects expire after their days; corpus and raw never do."
  }

  assert {
    condition = {
      for purpose, b in google_storage_bucket.this : purpose => [
        for r in b.lifecycle_rule : one(r.condition).days_since_noncurrent_time
        if one(r.action).type == "Delete" ? one(r.condition).with_state == "ARCHIVED" : false
      ]
    } == { corpus = [], raw = [30], rejects = [], staging = [], work = [] }
    error_message = "Old versions of raw input go after 30 days."
  }

  assert {
    condition = {
      for purpose, b in google_storage_bucket.this : purpose => [
        for r in b.lifecycle_rule : "${one(r.action).storage_class} ${one(r.condition).age}" if one(r.action).type == "SetStorageClass"
      ]
    } == { corpus = [], raw = ["NEARLINE 30"], rejects = [], staging = [], work = [] }
    error_message = "Raw input becomes cold after 30 days; a corpus, which training reads, never does."
  }

  assert {
    condition     = alltrue([for b in google_storage_bucket.this : length(b.retention_policy) == 0])
    error_message = "No retention rule by default."
  }

  assert {
    condition     = sort([for c in google_project_iam_audit_config.storage.audit_log_config : c.log_type]) == tolist(["ADMIN_READ", "DATA_WRITE"])
    error_message = "Writes and policy changes are logged, reads are not."
  }
}

run "never_cold" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    raw_cold = null
  }

  assert {
    condition     = alltrue([for r in google_storage_bucket.this["raw"].lifecycle_rule : one(r.action).type != "SetStorageClass"])
    error_message = "Null: raw input stays in its class."
  }
}

run "retention" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    corpus_retention_days = 365
  }

  assert {
    condition     = one(google_storage_bucket.this["corpus"].retention_policy).retention_period == "31536000"
    error_message = "365 days of retention on the corpus."
  }

  assert {
    condition     = !one(google_storage_bucket.this["corpus"].retention_policy).is_locked
    error_message = "The rule can be taken back by the owner of the project."
  }

  assert {
    condition     = [for purpose, b in google_storage_bucket.this : purpose if length(b.retention_policy) > 0] == ["corpus"]
    error_message = "Retention is for the corpus alone: elsewhere it would stop the lifecycle rules."
  }
}
