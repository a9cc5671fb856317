# Alerts that say what to do, the launcher's heartbeat, the funnel's dashboard, the budget.

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
    condition     = sort(keys(google_monitoring_alert_policy.this)) == tolist(["dead-letters", "job-failed", "launcher-died", "no-progress", "no-workers", "worker-memory"])
    error_message = "The six alerts."
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
    condition = (
      one(google_monitoring_alert_policy.this["no-workers"].conditions[0].condition_prometheus_query_language).duration == "1800s" &&
      strcontains(one(google_monitoring_alert_policy.this["no-workers"].conditions[0].condition_prometheus_query_language).query, "unless (max by (job_name, job_id) (dataflow_googleapis_com:job_current_num_vcpus")
    )
    error_message = "Half an hour of running without a worker."
  }

  assert {
    condition     = one(google_monitoring_alert_policy.this["job-failed"].conditions[0].condition_prometheus_query_language).duration == "0s"
    error_message = "A failed job fires an alert at once."
  }

  assert {
    condition = alltrue([
      for policy in google_monitoring_alert_policy.this :
      one(policy.conditions[0].condition_prometheus_query_language).disable_metric_validation
    ])
    error_message = "In a new project the metrics of jobs do not exist yet."
  }

  assert {
    condition = (
      google_monitoring_metric_descriptor.launcher.type == "custom.googleapis.com/refinery/launcher/at_work" &&
      google_monitoring_metric_descriptor.launcher.metric_kind == "GAUGE" &&
      google_monitoring_metric_descriptor.launcher.value_type == "INT64"
    )
    error_message = "The heartbeat's metric exists before the first run."
  }

  assert {
    condition = alltrue([
      for part in ["at_work{monitored_resource=\"generic_task\"}[24h])) == 1", "unless (max by (job)", "[15m])) >= 0)"] :
      strcontains(one(google_monitoring_alert_policy.this["launcher-died"].conditions[0].condition_prometheus_query_language).query, part)
    ])
    error_message = "A launcher whose last word was 1, fifteen minutes ago, is dead; one that said 0 is not."
  }

  assert {
    condition = alltrue([
      for key in ["dead-letters", "job-failed", "no-progress", "no-workers"] : strcontains(
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
