# This bucket is public: anyone may read an object whose name they know, and the manifest names them all. Nobody may list
# objects. It is separate from the corpus bucket, so that publishing is a deliberate copy.

resource "google_storage_bucket" "public" {
  # checkov:skip=CKV_GCP_62: a public bucket; the load balancer logs its requests
  # checkov:skip=CKV_GCP_78: holds copies of a corpus, which is still in the corpus bucket
  # checkov:skip=CKV_GCP_114: public by design; the other buckets enforce it
  project  = var.project_id
  name     = var.bucket
  location = var.location

  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "inherited"
  force_destroy               = false

  encryption {
    default_kms_key_name = var.kms_key
  }

  versioning {
    enabled = false
  }

  soft_delete_policy {
    retention_duration_seconds = 604800
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age = 7
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_storage_bucket_iam_member" "everybody" {
  # checkov:skip=CKV_GCP_28: the one bucket that is public on purpose; objects can be read by name, not listed
  bucket = google_storage_bucket.public.name
  role   = "roles/storage.legacyObjectReader"
  member = "allUsers"
}

resource "google_storage_bucket_iam_member" "writer" {
  bucket = google_storage_bucket.public.name
  role   = "roles/storage.objectUser"
  member = var.writer
}

resource "google_compute_backend_bucket" "public" {
  project     = var.project_id
  name        = "${var.name}-public"
  description = "Finished corpora for volunteers"
  bucket_name = google_storage_bucket.public.name
  enable_cdn  = true

  cdn_policy {
    # Objects in this bucket are public and immutable. After objects were removed, invalidate the
    # cache: gcloud compute url-maps invalidate-cdn-cache.
    cache_mode         = "FORCE_CACHE_ALL"
    client_ttl         = 86400
    default_ttl        = 2592000
    serve_while_stale  = 86400
    negative_caching   = true
    request_coalescing = true

    negative_caching_policy {
      code = 404
      ttl  = 30 # a manifest that is about to be written
    }
  }
}

resource "google_compute_url_map" "public" {
  project         = var.project_id
  name            = "${var.name}-public"
  default_service = google_compute_backend_bucket.public.id
}

resource "google_compute_managed_ssl_certificate" "public" {
  project = var.project_id
  name    = "${var.name}-public"

  managed {
    domains = [var.domain]
  }
}

resource "google_compute_ssl_policy" "public" {
  project         = var.project_id
  name            = "${var.name}-public"
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}

resource "google_compute_target_https_proxy" "public" {
  project          = var.project_id
  name             = "${var.name}-public"
  url_map          = google_compute_url_map.public.id
  ssl_certificates = [google_compute_managed_ssl_certificate.public.id]
  ssl_policy       = google_compute_ssl_policy.public.id
}

resource "google_compute_global_address" "public" {
  project = var.project_id
  name    = "${var.name}-public"
}

resource "google_compute_global_forwarding_rule" "public" {
  project               = var.project_id
  name                  = "${var.name}-public"
  target                = google_compute_target_https_proxy.public.id
  ip_address            = google_compute_global_address.public.id
  port_range            = "443"
  load_balancing_scheme = "EXTERNAL_MANAGED"
}
