# The launcher as a job of Cloud Run: the command that people give, on a machine that nobody closes. It holds a definition
# and starts nothing; `gcloud run jobs execute` does. A try that fails is followed by the same command, which resumes.

resource "google_cloud_run_v2_job" "this" {
  project  = var.project_id
  name     = "${var.name}-launcher"
  location = var.location

  # It keeps nothing: what a run needs to go on is in its buckets.
  deletion_protection = false

  template {
    task_count  = 1
    parallelism = 1

    template {
      service_account       = var.account
      encryption_key        = var.kms_key
      execution_environment = "EXECUTION_ENVIRONMENT_GEN2"
      max_retries           = var.retries
      timeout               = "${var.hours * 3600}s"

      containers {
        image = var.image
        args  = var.args

        resources {
          limits = { cpu = "2", memory = var.memory }
        }
      }

      # Google's APIs, and no way to the internet.
      vpc_access {
        egress = "ALL_TRAFFIC"

        network_interfaces {
          network    = var.interface.network
          subnetwork = var.interface.subnetwork
          tags       = var.interface.tags
        }
      }
    }
  }
}

# Starting it, with these arguments or with others: whoever may do that may act as the launcher anyway.
resource "google_cloud_run_v2_job_iam_member" "users" {
  for_each = toset(var.users)

  project  = var.project_id
  location = google_cloud_run_v2_job.this.location
  name     = google_cloud_run_v2_job.this.name
  role     = "roles/run.jobsExecutorWithOverrides"
  member   = each.value
}
