# One key protects buckets, images, and the workers' disks and shuffle. People and the three service accounts have no
# role on it: storage, registry, Dataflow and Compute Engine use it on their behalf, through their service agents.

locals {
  rotation_seconds = var.rotation_days * 86400
}

resource "google_kms_key_ring" "this" {
  project  = var.project_id
  name     = var.name
  location = var.location

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key" "this" {
  name            = var.name
  key_ring        = google_kms_key_ring.this.id
  purpose         = "ENCRYPT_DECRYPT"
  rotation_period = "${local.rotation_seconds}s"

  # A destroyed version can be restored for 30 days. Without its key a corpus cannot be read.
  destroy_scheduled_duration = "2592000s"

  version_template {
    algorithm        = "GOOGLE_SYMMETRIC_ENCRYPTION"
    protection_level = var.protection_level
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key_iam_member" "users" {
  for_each = var.users

  crypto_key_id = google_kms_crypto_key.this.id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:${each.value}"
}
