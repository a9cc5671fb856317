locals {
  # What each bucket holds, and for how long a mistake can be undone.
  #   versioned   keeps overwritten and deleted objects. Only for uploads by people: the pipeline never overwrites, and a
  #               kept version of a temporary file is billed twice.
  #   soft_delete days for which a deleted object can be restored. 0 where files exist for hours, which would be billed for
  #               a week, and where old versions are kept already, which would be billed twice as long.
  #   expire      days until an object is deleted; 0: never.
  #   retention   days for which nobody can delete; 0: no rule.
  buckets = {
    raw     = { versioned = true, soft_delete = 0, expire = 0, retention = 0 }
    staging = { versioned = false, soft_delete = 0, expire = var.staging_days, retention = 0 }
    work    = { versioned = false, soft_delete = 0, expire = var.work_days, retention = 0 }
    corpus  = { versioned = false, soft_delete = var.soft_delete_days, expire = 0, retention = var.corpus_retention_days }
    rejects = { versioned = false, soft_delete = 0, expire = var.reject_days, retention = 0 }
  }
}

resource "google_storage_bucket" "this" {
  # checkov:skip=CKV_GCP_62: who wrote what is in Cloud Audit Logs (audit.tf); usage logs need a bucket open to a group
  # checkov:skip=CKV_GCP_78: on for raw alone; corpus has soft delete and retention, the other three hold what expires
  for_each = local.buckets

  project  = var.project_id
  name     = "${var.prefix}-${each.key}"
  location = var.location

  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false

  encryption {
    default_kms_key_name = var.kms_key
  }

  versioning {
    enabled = each.value.versioned
  }

  soft_delete_policy {
    retention_duration_seconds = each.value.soft_delete * 86400
  }

  dynamic "retention_policy" {
    for_each = each.value.retention > 0 ? [each.value.retention] : []

    content {
      # Not locked: a locked rule can never be removed, not even by the owner of the project.
      is_locked        = false
      retention_period = tostring(retention_policy.value * 86400)
    }
  }

  # Some tools upload in parts (the XML API); parts left by a killed one are billed and never listed. The service drops the
  # pipeline's own incomplete uploads after a week.
  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age = 7
    }
  }

  dynamic "lifecycle_rule" {
    for_each = each.value.expire > 0 ? [each.value.expire] : []

    content {
      action {
        type = "Delete"
      }
      condition {
        age        = lifecycle_rule.value
        with_state = "ANY"
      }
    }
  }

  # Raw input is read once a run, and runs are weeks apart: a colder class costs less to keep and more to read.
  dynamic "lifecycle_rule" {
    for_each = each.key == "raw" && var.raw_cold != null ? [var.raw_cold] : []

    content {
      action {
        type          = "SetStorageClass"
        storage_class = lifecycle_rule.value.storage_class
      }
      condition {
        age                   = lifecycle_rule.value.days
        matches_storage_class = ["STANDARD"]
        with_state            = "LIVE"
      }
    }
  }

  dynamic "lifecycle_rule" {
    for_each = each.value.versioned ? [var.soft_delete_days] : []

    content {
      action {
        type = "Delete"
      }
      condition {
        days_since_noncurrent_time = lifecycle_rule.value
        with_state                 = "ARCHIVED"
      }
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}
