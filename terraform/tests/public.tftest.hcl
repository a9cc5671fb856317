# What volunteers read: a private bucket behind a CDN, which is off by default.

mock_provider "google" {
  override_during = plan

  mock_resource "google_service_account" {
    defaults = { email = "refinery-cdn@example-project.iam.gserviceaccount.com", member = "serviceAccount:cdn@x" }
  }
}

run "cdn" {
  command = plan

  module {
    source = "./modules/cdn"
  }

  variables {
    project_id = "example-project"
    location   = "europe-west4"
    name       = "refinery"
    bucket     = "b-public"
    kms_key    = "key"
    domain     = "data.example.org"
    writer     = "serviceAccount:l@x"
    rate       = 6000
  }

  assert {
    condition     = google_storage_bucket.public.public_access_prevention == "enforced"
    error_message = "The bucket itself is private."
  }

  assert {
    condition = (
      google_storage_bucket_iam_member.cdn.role == "roles/storage.legacyObjectReader" &&
      google_storage_bucket_iam_member.cdn.bucket == "b-public" &&
      google_storage_bucket_iam_member.cdn.member == "serviceAccount:cdn@x"
    )
    error_message = "Cloud CDN reads objects of this bucket by name; it cannot list them."
  }

  assert {
    condition = (
      google_compute_backend_service.public.enable_cdn &&
      google_compute_global_network_endpoint.public.fqdn == "b-public.storage.googleapis.com" &&
      google_compute_backend_service.public.custom_request_headers == toset(["Host: b-public.storage.googleapis.com"])
    )
    error_message = "The CDN is in front of the public bucket."
  }

  assert {
    condition     = one(one(google_compute_backend_service.public.security_settings).aws_v4_authentication).origin_region == "europe-west4"
    error_message = "Requests to the bucket are signed for its region."
  }

  assert {
    condition = [
      for rule in google_compute_security_policy.public.rule :
      "${rule.action} ${one(one(rule.rate_limit_options).rate_limit_threshold).count} ${one(rule.rate_limit_options).exceed_action}"
      if rule.priority == 1000
    ] == ["throttle 6000 deny(429)"]
    error_message = "One address is bounded to what was asked for."
  }

  assert {
    condition = (
      !one(one(google_compute_backend_service.public.cdn_policy).cache_key_policy).include_query_string &&
      one(google_compute_backend_service.public.cdn_policy).cache_mode == "USE_ORIGIN_HEADERS" &&
      one(google_compute_backend_service.public.cdn_policy).serve_while_stale == 0
    )
    error_message = "A query behind a name fetches nothing anew."
  }

  assert {
    condition     = google_compute_ssl_policy.public.min_tls_version == "TLS_1_2"
    error_message = "TLS 1.2 or newer."
  }

  assert {
    condition     = google_compute_global_forwarding_rule.public.port_range == "443"
    error_message = "HTTPS alone."
  }
}
