# Whole plans without a mock: what the service would compute is unknown, as in the first `terraform apply`. They need neither
# a credential nor the network, since the two data sources are overridden. Three sets of variables: the least, all of them,
# and all of them with other values.

override_data {
  target = data.google_project.this
  values = { number = "123456789012" }
}

override_data {
  target = data.google_storage_project_service_account.this
  values = { email_address = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com" }
}

variables {
  project_id = "example-project"
  region     = "europe-west4"

  alert_emails = []
}

run "least" {
  command = plan

  expect_failures = [check.alerts_have_recipients, check.cost_is_watched]
}

run "all" {
  command = plan

  variables {
    name                  = "corpora"
    bucket_prefix         = "example-corpora"
    labels                = { team = "data" }
    staging_days          = 14
    work_days             = 60
    reject_days           = 90
    raw_cold              = { days = 30, storage_class = "NEARLINE" }
    soft_delete_days      = 30
    corpus_retention_days = 365
    key_rotation_days     = 90
    key_protection_level  = "HSM"
    workers_cidr          = "10.20.0.0/20"
    google_access         = "restricted"
    perimeter             = { access_policy = "123456", identities = ["user:owner@example.org"] }
    launcher_users        = ["group:data@example.org", "serviceAccount:robot@example-project.iam.gserviceaccount.com"]
    reader_users          = ["group:training@example.org"]
    on_call_users         = ["group:on-call@example.org"]
    ci                    = { owner = "example", repository = "refinery", repository_id = "42", may_launch = true }
    alert_emails          = ["data@example.org", "more@example.org"]
    dead_letter_ratio     = 0.005
    no_progress_minutes   = 45
    worker_memory_ratio   = 0.9
    budget                = { billing_account = "012345-6789AB-CDEF01", monthly_amount = 5000, currency = "EUR" }
    public_domain         = "data.example.org"
    public_rate           = 6000
    launcher              = { hours = 48, retries = 3, memory = "8Gi" }
    recipe                = "recipes/web.yaml"
    input                 = "crawl/*.warc.gz"
    tokenizer             = "tokenizer/tokenizer.json"
    corpus                = "web-001"
    image_tag             = "0.1.0"
    max_workers           = 50
  }

  assert {
    condition     = length(module.cdn) == 1 && length(module.launcher) == 1 && length(module.perimeter) == 1
    error_message = "Everything that is off by default is planned."
  }
}

run "changed" {
  command = plan

  variables {
    name                  = "texts"
    bucket_prefix         = null
    labels                = {}
    staging_days          = 7
    work_days             = 14
    reject_days           = 1
    raw_cold              = null
    soft_delete_days      = 7
    corpus_retention_days = 0
    key_rotation_days     = 1
    key_protection_level  = "SOFTWARE"
    workers_cidr          = "192.168.0.0/16"
    google_access         = "restricted"
    perimeter             = { access_policy = "654321", identities = ["group:owners@example.org"], enforce = true, read_projects = ["42"] }
    launcher_users        = ["user:a@example.org", "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/group/data"]
    reader_users          = ["serviceAccount:example-project.svc.id.goog[train/loader]"]
    on_call_users         = ["user:a@example.org", "user:b@example.org"]
    ci                    = { owner = "other", repository = "fork", repository_id = "43", ref = "refs/tags/v1" }
    alert_emails          = ["a@example.org", "b@example.org", "c@example.org", "d@example.org", "e@example.org", "f@example.org"]
    dead_letter_ratio     = 0.5
    no_progress_minutes   = 10
    worker_memory_ratio   = 0.75
    budget                = { billing_account = "FFFFFF-FFFFFF-FFFFFF", monthly_amount = 1 }
    public_domain         = "other.example.com"
    public_rate           = 1
    launcher              = { hours = 168, retries = 0, memory = "1Gi" }
    recipe                = "gs://example-raw/recipes/own.yaml"
    input                 = "*"
    tokenizer             = "t.json"
    corpus                = "x"
    image_tag             = "1"
    max_workers           = 4000
  }

  assert {
    condition     = length(google_project_service.this) == 19
    error_message = "The APIs of everything are enabled."
  }
}
