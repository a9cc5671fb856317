locals {
  charts = [
    {
      title = "Documents into each stage"
      query = "sum ${local.by} (${local.counter}{${local.job}, metric_name=\"in\"})"
    },
    {
      title = "Documents kept by each stage"
      query = "sum ${local.by} (${local.counter}{${local.job}, metric_name=\"kept\"})"
    },
    {
      title = "Documents dropped by each stage"
      query = "sum ${local.by} (${local.counter}{${local.job}, metric_name=\"dropped\"})"
    },
    {
      title = "Dead letters of each stage"
      query = "sum ${local.by} (${local.counter}{${local.job}, metric_name=\"dead\"})"
    },
    {
      title = "Share kept by each stage"
      query = join(" ", [
        "sum ${local.by} (${local.counter}{${local.job}, metric_name=\"kept\"})",
        "/ sum ${local.by} (${local.counter}{${local.job}, metric_name=\"in\"})",
      ])
    },
    {
      title = "Documents read a second"
      query = "sum by (job_name) (deriv(${local.counter}{${local.job}, metric_name=\"in\", ptransform=~\"(.*/)?read/.*\"}[10m]))"
    },
    {
      title = "Cores in use"
      query = "sum by (job_name) (dataflow_googleapis_com:job_current_num_vcpus{${local.job}})"
    },
    {
      title = "Core hours so far"
      query = "sum by (job_name) (dataflow_googleapis_com:job_total_vcpu_time{${local.job}}) / 3600"
    },
    {
      title = "Bytes shuffled so far"
      query = "sum by (job_name) (dataflow_googleapis_com:job_total_shuffle_data_processed{${local.job}})"
    },
    {
      title = "Memory in use, of each worker"
      query = join(" ", [
        "sum by (job_id, worker_id)",
        "(dataflow_googleapis_com:worker_memory_bytes_used{monitored_resource=\"dataflow_worker\"})",
      ])
    },
    {
      title = "Launchers at work"
      query = "max by (job) (${local.heartbeat})"
    },
    {
      title = "Bytes in the buckets"
      query = join("", [
        "sum by (bucket_name) (storage_googleapis_com:storage_total_bytes{monitored_resource=\"gcs_bucket\", ",
        "bucket_name=~\"${join("|", sort(values(var.buckets)))}\"})",
      ])
    },
    {
      title = "Failed requests to the buckets a second"
      query = join("", [
        "sum by (bucket_name, response_code) (rate(storage_googleapis_com:api_request_count",
        "{monitored_resource=\"gcs_bucket\", response_code!=\"OK\", ",
        "bucket_name=~\"${join("|", sort(values(var.buckets)))}\"}[5m]))",
      ])
    },
  ]

  chart_width  = 24
  chart_height = 16
}

resource "google_monitoring_dashboard" "funnel" {
  project = var.project_id

  dashboard_json = jsonencode({
    displayName = "${var.name}: the funnel"
    mosaicLayout = {
      columns = 48
      tiles = [
        for index, chart in local.charts : {
          xPos   = index % 2 * local.chart_width
          yPos   = floor(index / 2) * local.chart_height
          width  = local.chart_width
          height = local.chart_height
          widget = {
            title = chart.title
            xyChart = {
              dataSets = [{
                plotType        = "LINE"
                timeSeriesQuery = { prometheusQuery = chart.query }
              }]
            }
          }
        }
      ]
    }
  })
}
