# Anyone may read an object whose name they know, and the manifest names them all, but only through the load balancer: the
# bucket is private, Cloud CDN signs its own requests to it, and Cloud Armor bounds what one address asks for beyond the
# cache. It is separate from the corpus bucket, so that publishing is a deliberate copy.

locals {
  host = "${google_storage_bucket.public.name}.storage.googleapis.com"
}

resource "google_storage_bucket" "public" {
  # checkov:skip=CKV_GCP_62: the load balancer logs the requests of readers
  # checkov:skip=CKV_GCP_78: holds copies of a corpus, which is still in the corpus bucket
  # Hence no prevent_destroy: public_domain can be taken back once the bucket is empty (force_destroy is false).
  project  = var.project_id
  name     = var.bucket
  location = var.location

  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
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
}

resource "google_storage_bucket_iam_member" "writer" {
  bucket = google_storage_bucket.public.name
  role   = "roles/storage.objectUser"
  member = var.writer
}

# The one who reads the bucket for everybody. Its HMAC key is the only key of this project: Cloud CDN signs with nothing
# else. It is in Terraform's state, so the state is a secret; it reads what is public anyway.
resource "google_service_account" "cdn" {
  project      = var.project_id
  account_id   = "${var.name}-cdn"
  display_name = "${var.name} cdn"
  description  = "Cloud CDN: reads objects of the public bucket, nothing else"
}

resource "google_storage_bucket_iam_member" "cdn" {
  bucket = google_storage_bucket.public.name
  role   = "roles/storage.legacyObjectReader"
  member = google_service_account.cdn.member
}

resource "google_storage_hmac_key" "cdn" {
  project               = var.project_id
  service_account_email = google_service_account.cdn.email
}

resource "google_compute_global_network_endpoint_group" "public" {
  project               = var.project_id
  name                  = "${var.name}-public"
  network_endpoint_type = "INTERNET_FQDN_PORT"
  default_port          = 443
}

resource "google_compute_global_network_endpoint" "public" {
  project                       = var.project_id
  global_network_endpoint_group = google_compute_global_network_endpoint_group.public.name
  fqdn                          = local.host
  port                          = 443
}

resource "google_compute_security_policy" "public" {
  # checkov:skip=CKV_GCP_73: the rule is against a flaw of Java servers; here is a bucket of files
  project     = var.project_id
  name        = "${var.name}-public"
  description = "Bounds what one address asks of the bucket; what the cache holds is not counted"

  rule {
    priority    = 1000
    description = "So many requests a minute and address"
    action      = "throttle"

    match {
      versioned_expr = "SRC_IPS_V1"

      config {
        src_ip_ranges = ["*"]
      }
    }

    rate_limit_options {
      conform_action = "allow"
      exceed_action  = "deny(429)"
      enforce_on_key = "IP"

      rate_limit_threshold {
        count        = var.rate
        interval_sec = 60
      }
    }
  }

  rule {
    priority    = 2147483647
    description = "Every policy ends with a rule for everybody; the one above decides"
    action      = "allow"

    match {
      versioned_expr = "SRC_IPS_V1"

      config {
        src_ip_ranges = ["*"]
      }
    }
  }
}

resource "google_compute_backend_service" "public" {
  project                         = var.project_id
  name                            = "${var.name}-public"
  description                     = "Finished corpora for volunteers"
  load_balancing_scheme           = "EXTERNAL_MANAGED"
  protocol                        = "HTTPS"
  timeout_sec                     = 300
  custom_request_headers          = ["Host: ${local.host}"]
  security_policy                 = google_compute_security_policy.public.id
  enable_cdn                      = true
  connection_draining_timeout_sec = 0

  backend {
    group = google_compute_global_network_endpoint_group.public.id
  }

  security_settings {
    aws_v4_authentication {
      access_key_id      = google_storage_hmac_key.cdn.access_id
      access_key         = google_storage_hmac_key.cdn.secret
      access_key_version = google_storage_hmac_key.cdn.access_id
      origin_region      = var.location
    }
  }

  cdn_policy {
    # Each object says how long caches may keep it: data files never change, and what names them (manifest.json, which
    # an export that grows replaces) is asked for again each time. After objects were removed, invalidate the cache:
    # gcloud compute url-maps invalidate-cdn-cache.
    cache_mode         = "USE_ORIGIN_HEADERS"
    serve_while_stale  = 0
    negative_caching   = true
    request_coalescing = true

    negative_caching_policy {
      code = 404
      ttl  = 30 # a manifest that is about to be written
    }

    cache_key_policy {
      include_host         = true
      include_protocol     = true
      include_query_string = false # or everybody could fetch everything anew
    }
  }

  log_config {
    enable      = true
    sample_rate = 0.01
  }

  depends_on = [google_compute_global_network_endpoint.public]
}

resource "google_compute_url_map" "public" {
  project         = var.project_id
  name            = "${var.name}-public"
  default_service = google_compute_backend_service.public.id
}

resource "google_compute_managed_ssl_certificate" "public" {
  project = var.project_id
  name    = "${var.name}-public-${substr(sha256(var.domain), 0, 8)}"

  managed {
    domains = [var.domain]
  }

  # Another domain needs another certificate, and the proxy uses the old one until it has the new one.
  lifecycle {
    create_before_destroy = true
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
