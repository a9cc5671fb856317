# While a command waits for jobs, it writes 1 every minute, and 0 when it ends in order (pipelines/runners/dataflow/heartbeat.py).
# The metric is made here, so that the alert on it can exist before the first run.
resource "google_monitoring_metric_descriptor" "launcher" {
  project      = var.project_id
  type         = "custom.googleapis.com/refinery/launcher/at_work"
  metric_kind  = "GAUGE"
  value_type   = "INT64"
  unit         = "1"
  display_name = "${var.name}: the launcher is at work"
  description  = "1 while the launcher of a run is at work, 0 once it has ended in order"
}

locals {
  heartbeat = "custom_googleapis_com:refinery_launcher_at_work{monitored_resource=\"generic_task\"}"

  # A beat a minute: fifteen that are missing are no slow network. After the longer window the alert has said it often enough.
  launcher_silent     = "15m"
  launcher_remembered = "24h"
}
