# Alerts that say what to do, the funnel's dashboard, the budget; and the CDN module, which is off by default.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id          = "example-project"
  project_number      = "123456789012"
  name                = "refinery"
  job_prefix          = "refinery-"
  alert_emails        = ["a@example.org", "b@example.org"]
  dead_letter_ratio   = 0.005
  no_progress_minutes = 45
  worker_memory_ratio = 0.9
  buckets             = { raw = "b-raw", corpus = "b-corpus" }
  budget              = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 5000, currency = "EUR" }
}

run "alerts" {
  command = plan

  module {
    source = "./modules/monitoring"
  }

  assert {
    condition     = sort(keys(google_monitoring_alert_policy.this)) == tolist(["dead-letters", "job-failed", "no-progress", "worker-memory"])
    error_message = "The four alerts."
  }

  assert {
    condition = alltrue([
      for policy in concat(values(google_monitoring_alert_policy.this), [google_monitoring_alert_policy.out_of_memory]) :
      length(policy.documentation[0].content) > 300 && strcontains(policy.documentation[0].content, "1. ")
    ])
    error_message = "Every alert says what to do, step by step."
  }

  assert {
    condition     = alltrue([for policy in google_monitoring_alert_policy.this : length(policy.notification_channels) == 2])
    error_message = "Every alert reaches everybody."
  }

  assert {
    condition     = strcontains(one(google_monitoring_alert_policy.this["dead-letters"].conditions[0].condition_prometheus_query_language).query, "> 0.005")
    error_message = "The ratio is the one that was asked for."
  }

  assert {
    condition     = one(google_monitoring_alert_policy.this["no-progress"].conditions[0].condition_prometheus_query_language).duration == "2700s"
    error_message = "45 minutes without progress."
  }

  assert {
    condition     = one(google_monitoring_alert_policy.this["job-failed"].conditions[0].condition_prometheus_query_language).duration == "0s"
    error_message = "A failed job fires an alert at once."
  }

  assert {
    condition = alltrue([
      for key in ["dead-letters", "job-failed", "no-progress"] : strcontains(
        one(google_monitoring_alert_policy.this[key].conditions[0].condition_prometheus_query_language).query, "job_name=~\"refinery-.*\""
      )
    ])
    error_message = "Our jobs alone are watched."
  }

  assert {
    condition     = length(one(google_monitoring_alert_policy.out_of_memory.alert_strategy).notification_rate_limit) == 1
    error_message = "A policy on log lines needs a rate limit."
  }

  assert {
    condition     = length(jsondecode(google_monitoring_dashboard.funnel.dashboard_json).mosaicLayout.tiles) >= 10
    error_message = "The dashboard has a chart of each outcome, of cost and of the buckets."
  }

  assert {
    condition = alltrue([
      for outcome in ["in", "kept", "dropped", "dead"] :
      strcontains(google_monitoring_dashboard.funnel.dashboard_json, "metric_name=\\\"${outcome}\\\"")
    ])
    error_message = "Every outcome of the funnel has its chart."
  }

  assert {
    condition = (
      google_billing_budget.this["this"].amount[0].specified_amount[0].units == "5000" &&
      google_billing_budget.this["this"].amount[0].specified_amount[0].currency_code == "EUR"
    )
    error_message = "The budget is the one that was asked for."
  }

  assert {
    condition     = one(google_billing_budget.this["this"].budget_filter).projects == toset(["projects/123456789012"])
    error_message = "The budget is that of the project alone."
  }

  assert {
    condition     = contains([for rule in google_billing_budget.this["this"].threshold_rules : rule.spend_basis], "FORECASTED_SPEND")
    error_message = "A month over budget is forecast before it ends."
  }
}

run "without_budget" {
  command = plan

  module {
    source = "./modules/monitoring"
  }

  variables {
    budget       = null
    alert_emails = []
  }

  assert {
    condition     = length(google_billing_budget.this) == 0 && length(google_monitoring_notification_channel.email) == 0
    error_message = "Neither budget nor channel by default."
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
  }

  assert {
    condition     = google_storage_bucket_iam_member.everybody.role == "roles/storage.legacyObjectReader"
    error_message = "Everybody reads objects by name; nobody lists."
  }

  assert {
    condition     = google_storage_bucket_iam_member.everybody.bucket == "b-public"
    error_message = "Everybody reads the public bucket, not another."
  }

  assert {
    condition     = google_compute_backend_bucket.public.enable_cdn && google_compute_backend_bucket.public.bucket_name == "b-public"
    error_message = "The CDN is in front of the public bucket."
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
