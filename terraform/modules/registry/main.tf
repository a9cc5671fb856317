resource "google_artifact_registry_repository" "workers" {
  project       = var.project_id
  location      = var.location
  repository_id = var.name
  description   = "Images of the workers. A pushed tag is immutable"
  format        = "DOCKER"
  kms_key_name  = var.kms_key

  docker_config {
    immutable_tags = true
  }

  # A tagged image is never removed: a manifest names it, and runs are repeated with it. Layers of failed pushes are.
  cleanup_policy_dry_run = false

  cleanup_policies {
    id     = "remove-untagged"
    action = "DELETE"

    condition {
      tag_state  = "UNTAGGED"
      older_than = "1209600s"
    }
  }

  cleanup_policies {
    id     = "keep-recent"
    action = "KEEP"

    most_recent_versions {
      keep_count = 5
    }
  }
}

resource "google_artifact_registry_repository_iam_member" "readers" {
  for_each = var.readers

  project    = var.project_id
  location   = google_artifact_registry_repository.workers.location
  repository = google_artifact_registry_repository.workers.name
  role       = "roles/artifactregistry.reader"
  member     = each.value
}

resource "google_artifact_registry_repository_iam_member" "writers" {
  for_each = var.writers

  project    = var.project_id
  location   = google_artifact_registry_repository.workers.location
  repository = google_artifact_registry_repository.workers.name
  role       = "roles/artifactregistry.writer"
  member     = each.value
}
