# The key and the images.

mock_provider "google" {
  override_during = plan
}

run "key" {
  command = plan

  module {
    source = "./modules/encryption"
  }

  variables {
    project_id       = "example-project"
    location         = "europe-west4"
    name             = "refinery"
    rotation_days    = 90
    protection_level = "SOFTWARE"
    users            = { storage = "s@x", dataflow = "d@x" }
  }

  assert {
    condition     = google_kms_crypto_key.this.rotation_period == "7776000s"
    error_message = "A new version every 90 days."
  }

  assert {
    condition     = google_kms_crypto_key.this.destroy_scheduled_duration == "2592000s"
    error_message = "A destroyed version can be restored for 30 days."
  }

  assert {
    condition = {
      for user, grant in google_kms_crypto_key_iam_member.users : user => "${grant.member} ${grant.role}"
      } == {
      storage  = "serviceAccount:s@x roles/cloudkms.cryptoKeyEncrypterDecrypter"
      dataflow = "serviceAccount:d@x roles/cloudkms.cryptoKeyEncrypterDecrypter"
    }
    error_message = "The service agents, and nobody else, encrypt and decrypt."
  }
}

run "images" {
  command = plan

  module {
    source = "./modules/registry"
  }

  variables {
    project_id = "example-project"
    location   = "europe-west4"
    name       = "refinery"
    kms_key    = "key"
    readers    = { worker = "serviceAccount:w@x" }
    writers    = {}
  }

  assert {
    condition     = google_artifact_registry_repository.workers.docker_config[0].immutable_tags
    error_message = "A tag never changes its meaning."
  }

  assert {
    condition     = google_artifact_registry_repository.workers.kms_key_name == "key"
    error_message = "Images are encrypted with our key."
  }

  assert {
    condition = [
      for p in google_artifact_registry_repository.workers.cleanup_policies : one(p.condition).tag_state if p.action == "DELETE"
    ] == ["UNTAGGED"]
    error_message = "No tagged image is ever removed."
  }

  assert {
    condition     = google_artifact_registry_repository_iam_member.readers["worker"].role == "roles/artifactregistry.reader"
    error_message = "The worker pulls."
  }

  assert {
    condition     = length(google_artifact_registry_repository_iam_member.writers) == 0
    error_message = "Nobody pushes who is not named."
  }

  assert {
    condition     = output.url == "europe-west4-docker.pkg.dev/example-project/refinery"
    error_message = "What image names begin with."
  }
}
