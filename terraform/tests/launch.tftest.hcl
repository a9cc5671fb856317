# The whole plan: it fits together, owns no job, prints the command that launches one, and warns of what is missing.

mock_provider "google" {
  override_during = plan

  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }

  mock_data "google_storage_project_service_account" {
    defaults = { email_address = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com" }
  }

  mock_resource "google_service_account" {
    defaults = {
      email  = "account@example-project.iam.gserviceaccount.com"
      member = "serviceAccount:account@example-project.iam.gserviceaccount.com"
      name   = "projects/example-project/serviceAccounts/account@example-project.iam.gserviceaccount.com"
    }
  }

  mock_resource "google_iam_workload_identity_pool" {
    defaults = { name = "projects/123456789012/locations/global/workloadIdentityPools/refinery-ci" }
  }

  mock_resource "google_kms_crypto_key" {
    defaults = { id = "projects/example-project/locations/europe-west4/keyRings/refinery/cryptoKeys/refinery" }
  }
}

variables {
  project_id   = "example-project"
  region       = "europe-west4"
  alert_emails = ["data@example.org"]
  budget       = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 5000 }
}

run "whole" {
  command = plan

  assert {
    condition = output.launch_command == join(" \\\n  ", [
      "refinery refine recipes/web.yaml",
      "--input 'gs://example-project-refinery-raw/crawl/*.warc.gz'",
      "--set tokenizer.path=gs://example-project-refinery-raw/tokenizer/tokenizer.json",
      "--output gs://example-project-refinery-corpus/web-001",
      "--work gs://example-project-refinery-work/web-001",
      "--runner DataflowRunner",
      "--project example-project",
      "--region europe-west4",
      "--temp_location gs://example-project-refinery-staging/temp",
      "--staging_location gs://example-project-refinery-staging/staging",
      "--sdk_container_image europe-west4-docker.pkg.dev/example-project/refinery/worker:0.1.0",
      "--service_account_email account@example-project.iam.gserviceaccount.com",
      "--subnetwork https://www.googleapis.com/compute/v1/projects/example-project/regions/europe-west4/subnetworks/refinery-workers",
      "--no_use_public_ips",
      "--dataflow_kms_key projects/example-project/locations/europe-west4/keyRings/refinery/cryptoKeys/refinery",
      "--max_num_workers 50",
    ])
    error_message = "The launch command is complete and names what was made."
  }

  assert {
    condition     = length(google_project_service.this) == 16 && alltrue([for api in google_project_service.this : !api.disable_on_destroy])
    error_message = "The APIs are enabled, and stay enabled."
  }

  assert {
    condition     = contains(keys(google_project_service.this), "dataflow.googleapis.com") && !contains(keys(google_project_service.this), "sts.googleapis.com")
    error_message = "What is needed is enabled, what is not is not."
  }

  assert {
    condition     = length(module.cdn) == 0 && output.public == null
    error_message = "Nothing is public by default."
  }

  assert {
    condition     = length(module.launcher) == 0 && output.execute_command == null && length(module.perimeter) == 0 && output.perimeter == null
    error_message = "Neither launcher in Cloud Run nor perimeter by default."
  }

  assert {
    condition     = output.ci_provider == null
    error_message = "No federation by default."
  }

  assert {
    condition     = length(output.alerts) == 7
    error_message = "Six policies on metrics, one on the kernel's word."
  }

  assert {
    condition = alltrue([
      for service in ["compute", "dataflow", "registry"] :
      strcontains(local.service_agents[service], "service-123456789012@")
    ])
    error_message = "The key is for this project's own service agents."
  }
}

run "with_everything" {
  command = plan

  override_resource {
    target          = module.cdn["this"].google_service_account.cdn
    override_during = plan
    values = {
      email  = "refinery-cdn@example-project.iam.gserviceaccount.com"
      member = "serviceAccount:refinery-cdn@example-project.iam.gserviceaccount.com"
    }
  }

  variables {
    bucket_prefix = "corpora"
    public_domain = "data.example.org"
    ci            = { owner = "example", repository = "refinery", repository_id = "42" }
    image_tag     = "2026-11-21"
    launcher      = { hours = 48 }
    google_access = "restricted"
    perimeter     = { access_policy = "123456", identities = ["user:owner@example.org"], enforce = true }
    reader_users  = ["serviceAccount:example-project.svc.id.goog[train/loader]"]
    corpus        = "web-002"
    labels        = { team = "data", cost = "42" }
    max_workers   = 500
  }

  assert {
    condition     = output.buckets["corpus"] == "corpora-corpus"
    error_message = "The prefix that was asked for."
  }

  assert {
    condition     = strcontains(output.launch_command, "--output gs://corpora-corpus/web-002 ") && strcontains(output.launch_command, "--max_num_workers 500")
    error_message = "The launch command follows the variables."
  }

  assert {
    condition     = endswith(output.launch_command, "--labels cost=42 \\\n  --labels team=data")
    error_message = "Jobs have the labels of the other resources, for cost reports."
  }

  assert {
    condition     = endswith(output.worker_image, "/worker:2026-11-21") && strcontains(output.image_commands, "docker/build.sh europe-west4-docker.pkg.dev/example-project/refinery 2026-11-21")
    error_message = "The image that is pushed is the image that is launched."
  }

  assert {
    condition     = output.public.bucket == "corpora-public" && output.public.url == "https://data.example.org"
    error_message = "The public bucket is one of its own."
  }

  assert {
    condition     = output.execute_command == "gcloud run jobs execute refinery-launcher --project example-project --region europe-west4"
    error_message = "The launcher in Cloud Run is started by one command."
  }

  assert {
    condition     = local.service_agents["run"] == "service-123456789012@serverless-robot-prod.iam.gserviceaccount.com"
    error_message = "Cloud Run encrypts with the project's key."
  }

  assert {
    condition     = local.words[0] == "refinery" && contains(local.words, "gs://corpora-raw/crawl/*.warc.gz") && !strcontains(join("", local.words), "'")
    error_message = "The job's arguments are the launch command's, without a shell's quotes."
  }

  # CI, Cloud CDN and whoever applies are not locked out by it; Kubernetes service accounts are refused by the service.
  assert {
    condition = sort(module.perimeter["this"].identities) == tolist([
      "principalSet://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/refinery-ci/attribute.repository_id/42",
      "serviceAccount:account@example-project.iam.gserviceaccount.com",
      "serviceAccount:refinery-cdn@example-project.iam.gserviceaccount.com",
      "user:owner@example.org",
    ])
    error_message = "Who calls from outside the perimeter."
  }

  assert {
    condition     = contains(keys(google_project_service.this), "run.googleapis.com") && contains(keys(google_project_service.this), "accesscontextmanager.googleapis.com")
    error_message = "What launcher and perimeter need is enabled."
  }

  assert {
    condition     = contains(keys(google_project_service.this), "sts.googleapis.com")
    error_message = "Federation needs the token service."
  }
}

run "nobody_is_notified" {
  command = plan

  variables {
    alert_emails = []
  }

  expect_failures = [check.alerts_have_recipients]
}

run "cost_is_not_watched" {
  command = plan

  variables {
    budget = null
  }

  expect_failures = [check.cost_is_watched]
}
