# Alerts on six conditions that end a run, or double its price, unless someone acts. What each means and what to do is in
# runbooks/, and is part of the notification.
#
# The pipeline counts documents as in, kept, dropped and dead in every stage. Dataflow exports these counters as
# job/user_counter, with the counter's name as metric_name and the stage's step as ptransform.

locals {
  job     = "monitored_resource=\"dataflow_job\", job_name=~\"${var.job_prefix}.*\""
  counter = "dataflow_googleapis_com:job_user_counter"
  by      = "by (job_name, job_id, ptransform)"

  # Below this many documents a ratio is meaningless.
  ratio_needs = 1000

  # Workers of a new job need about five.
  no_workers_minutes = 30

  # For Dataflow's sampling and a slow start of workers; the policy adds no_progress_minutes.
  progress_window = "15m"

  alerts = {
    job-failed = {
      title    = "job failed"
      severity = "CRITICAL"
      minutes  = 0
      query    = "max by (job_name, job_id) (dataflow_googleapis_com:job_is_failed{${local.job}}) > 0"
    }
    dead-letters = {
      title    = "too many dead letters"
      severity = "WARNING"
      minutes  = 5
      query = join(" ", [
        "(sum ${local.by} (${local.counter}{${local.job}, metric_name=\"dead\"})",
        "/ sum ${local.by} (${local.counter}{${local.job}, metric_name=\"in\"})) > ${var.dead_letter_ratio}",
        "and sum ${local.by} (${local.counter}{${local.job}, metric_name=\"in\"}) >= ${local.ratio_needs}",
      ])
    }
    launcher-died = {
      title    = "launcher died"
      severity = "ERROR"
      minutes  = 0
      query = join(" ", [
        "(max by (job) (last_over_time(${local.heartbeat}[${local.launcher_remembered}])) == 1)",
        "unless (max by (job) (last_over_time(${local.heartbeat}[${local.launcher_silent}])) >= 0)",
      ])
    }
    no-progress = {
      title    = "running without progress"
      severity = "ERROR"
      minutes  = var.no_progress_minutes
      query = join(" ", [
        "(max by (job_name, job_id) (dataflow_googleapis_com:job_current_num_vcpus{${local.job}}) > 0)",
        "unless (sum by (job_name, job_id)",
        "(increase(dataflow_googleapis_com:job_elements_produced_count{${local.job}}[${local.progress_window}])) > 0)",
      ])
    }
    no-workers = {
      title    = "running without workers"
      severity = "ERROR"
      minutes  = local.no_workers_minutes
      # The elapsed time of a job rises while it runs. A job that waits for cheaper machines (FlexRS) does not run yet.
      query = join(" ", [
        "(max by (job_name, job_id) (deriv(dataflow_googleapis_com:job_elapsed_time{${local.job}}[10m])) > 0)",
        "unless (max by (job_name, job_id) (dataflow_googleapis_com:job_current_num_vcpus{${local.job}}) > 0)",
      ])
    }
    worker-memory = {
      title    = "worker memory nearly full"
      severity = "WARNING"
      minutes  = 5
      query = join(" ", [
        "max by (job_id, worker_id) (sum by (job_id, worker_id)",
        "(dataflow_googleapis_com:worker_memory_bytes_used{monitored_resource=\"dataflow_worker\"})",
        "/ max by (job_id, worker_id)",
        "(dataflow_googleapis_com:worker_memory_total_limit{monitored_resource=\"dataflow_worker\"}))",
        "> ${var.worker_memory_ratio}",
      ])
    }
  }

  channels = [for channel in google_monitoring_notification_channel.email : channel.id]
}

resource "google_monitoring_notification_channel" "email" {
  for_each = toset(var.alert_emails)

  project      = var.project_id
  display_name = "${var.name}: ${each.value}"
  type         = "email"
  labels       = { email_address = each.value }

  # A channel cannot be deleted while a policy uses it: policies are updated first, only then is it destroyed.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_monitoring_alert_policy" "this" {
  for_each = local.alerts

  project               = var.project_id
  display_name          = "${var.name}: ${each.value.title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels

  conditions {
    display_name = each.value.title

    condition_prometheus_query_language {
      query               = each.value.query
      duration            = "${each.value.minutes * 60}s"
      evaluation_interval = "60s"
      # In a new project no job has run, and Dataflow's metrics do not exist: the policy would be refused.
      disable_metric_validation = true
    }
  }

  documentation {
    subject   = "${var.name}: ${each.value.title}"
    content   = file("${path.module}/runbooks/${each.key}.md")
    mime_type = "text/markdown"
  }

  alert_strategy {
    auto_close = "86400s"
  }

  depends_on = [google_monitoring_metric_descriptor.launcher]
}

# Out-of-memory kills logged by the kernel: memory can rise from 60 % to the limit between two samples of the policy above.
resource "google_monitoring_alert_policy" "out_of_memory" {
  project               = var.project_id
  display_name          = "${var.name}: worker out of memory"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = local.channels

  conditions {
    display_name = "worker out of memory"

    condition_matched_log {
      filter = join(" AND ", [
        "resource.type=\"dataflow_step\"",
        "resource.labels.job_name=~\"^${var.job_prefix}\"",
        "(\"Out of memory: Killed process\" OR \"Memory cgroup out of memory\" OR \"oom-kill\")",
      ])
    }
  }

  documentation {
    subject   = "${var.name}: worker out of memory"
    content   = file("${path.module}/runbooks/worker-memory.md")
    mime_type = "text/markdown"
  }

  alert_strategy {
    auto_close = "86400s"

    notification_rate_limit {
      period = "3600s"
    }
  }
}
