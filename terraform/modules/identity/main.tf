locals {
  accounts = {
    launcher = "Launches runs and publishes their manifest; for people and CI"
    worker   = "Dataflow workers: read raw input, write parts and shards, delete neither"
    reader   = "Training nodes: read a finished corpus, nothing else"
  }

  # All grants on buckets. objectCreator can create but not overwrite, which needs the permission to delete. So a
  # published corpus stays unchanged, whatever code a worker runs.
  bucket_roles = {
    launcher = {
      raw     = ["roles/storage.objectViewer"]
      staging = ["roles/storage.objectUser", "roles/storage.legacyBucketReader"]
      work    = ["roles/storage.objectUser"]
      corpus  = ["roles/storage.objectCreator", "roles/storage.objectViewer"]
      rejects = ["roles/storage.objectUser"]
    }
    worker = {
      raw     = ["roles/storage.objectViewer"]
      staging = ["roles/storage.objectUser"]
      work    = ["roles/storage.objectCreator", "roles/storage.objectViewer"]
      corpus  = ["roles/storage.objectCreator", "roles/storage.objectViewer"]
    }
    reader = {
      corpus = ["roles/storage.objectViewer"]
    }
  }

  # dataflow.worker also lets the workers read and create objects in every bucket of the project: keep nothing else there.
  project_roles = {
    launcher = [
      "roles/dataflow.developer",
      "roles/monitoring.metricWriter",           # its heartbeat
      "roles/serviceusage.serviceUsageConsumer", # where a sign-in names this project for quota and billing of its requests
    ]
    reader = ["roles/serviceusage.serviceUsageConsumer"]
    worker = ["roles/dataflow.worker"]
  }

  bucket_grants = merge([
    for account, buckets in local.bucket_roles : merge([
      for purpose, roles in buckets : {
        for role in roles : "${account}/${purpose}/${role}" => { account = account, purpose = purpose, role = role }
      }
    ]...)
  ]...)

  project_grants = merge([
    for account, roles in local.project_roles : {
      for role in roles : "${account}/${role}" => { account = account, role = role }
    }
  ]...)

  acting = merge(
    { for member in var.launcher_users : "launcher/${member}" => { account = "launcher", member = member, role = local.acting_role[member] } },
    { for member in var.reader_users : "reader/${member}" => { account = "reader", member = member, role = local.acting_role[member] } },
  )

  # What a runbook needs somebody to see. Nothing here reads an object or changes anything.
  on_call_roles = ["roles/dataflow.viewer", "roles/logging.viewer", "roles/monitoring.viewer"]

  # An identity of another platform acts by federation; a person, group or account of Google by a token.
  acting_role = {
    for member in distinct(concat(var.launcher_users, var.reader_users)) : member => (
      can(regex("^principal|\\.svc\\.id\\.goog\\[", member)) ? "roles/iam.workloadIdentityUser" : "roles/iam.serviceAccountTokenCreator"
    )
  }
}

resource "google_service_account" "this" {
  for_each = local.accounts

  project      = var.project_id
  account_id   = "${var.name}-${each.key}"
  display_name = "${var.name} ${each.key}"
  description  = each.value
}

resource "google_project_iam_member" "this" {
  for_each = local.project_grants

  project = var.project_id
  role    = each.value.role
  member  = google_service_account.this[each.value.account].member
}

resource "google_project_iam_member" "on_call" {
  for_each = { for pair in setproduct(var.on_call_users, local.on_call_roles) : join("/", pair) => { member = pair[0], role = pair[1] } }

  project = var.project_id
  role    = each.value.role
  member  = each.value.member
}

resource "google_storage_bucket_iam_member" "this" {
  for_each = local.bucket_grants

  bucket = var.buckets[each.value.purpose]
  role   = each.value.role
  member = google_service_account.this[each.value.account].member
}

# Allows starting jobs that run as the worker, and as no other account of the project.
resource "google_service_account_iam_member" "launcher_uses_worker" {
  service_account_id = google_service_account.this["worker"].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.this["launcher"].member
}

# Instead of keys, which leak: a person's own sign-in is exchanged for an hour's token of the account.
resource "google_service_account_iam_member" "acting" {
  for_each = local.acting

  service_account_id = google_service_account.this[each.value.account].name
  role               = each.value.role
  member             = each.value.member
}
