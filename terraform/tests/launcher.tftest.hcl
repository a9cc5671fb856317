# The launcher as a job of Cloud Run, and the perimeter: both off by default.

mock_provider "google" {
  override_during = plan
}

run "launcher" {
  command = plan

  module {
    source = "./modules/launcher"
  }

  variables {
    project_id = "example-project"
    location   = "europe-west4"
    name       = "refinery"
    image      = "europe-west4-docker.pkg.dev/example-project/refinery/launcher:1"
    args       = ["refine", "recipes/web.yaml"]
    account    = "l@x"
    users      = ["group:data@example.org"]
    kms_key    = "key"
    interface  = { network = "n", subnetwork = "s", tags = ["launcher"] }
    hours      = 48
    retries    = 3
    memory     = "8Gi"
  }

  assert {
    condition     = one(one(google_cloud_run_v2_job.this.template).template).timeout == "172800s"
    error_message = "48 hours a try."
  }

  assert {
    condition     = one(one(google_cloud_run_v2_job.this.template).template).max_retries == 3 && one(google_cloud_run_v2_job.this.template).task_count == 1
    error_message = "One launcher, which goes on where a try ended."
  }

  assert {
    condition     = one(one(google_cloud_run_v2_job.this.template).template).service_account == "l@x"
    error_message = "It is the launcher, not the project's default account."
  }

  assert {
    condition     = one(one(one(google_cloud_run_v2_job.this.template).template).containers).args == tolist(["refine", "recipes/web.yaml"])
    error_message = "It gives the same command."
  }

  assert {
    condition     = one(one(one(google_cloud_run_v2_job.this.template).template).vpc_access).egress == "ALL_TRAFFIC"
    error_message = "It reaches Google's APIs through the closed network, and nothing else."
  }

  assert {
    condition     = [for g in google_cloud_run_v2_job_iam_member.users : "${g.member} ${g.role}"] == ["group:data@example.org roles/run.jobsExecutorWithOverrides"]
    error_message = "Whoever may launch may start it."
  }
}

run "perimeter" {
  command = plan

  module {
    source = "./modules/perimeter"
  }

  variables {
    access_policy  = "123"
    project_number = "123456789012"
    name           = "refinery"
    services       = ["storage.googleapis.com", "dataflow.googleapis.com"]
    identities     = ["user:a@example.org", "user:a@example.org"]
    enforce        = true
    read_projects  = []
    readers        = ["serviceAccount:w@x"]
  }

  assert {
    condition     = one(google_access_context_manager_service_perimeter.this.status).resources == toset(["projects/123456789012"])
    error_message = "The project is inside."
  }

  assert {
    condition     = one(one(one(google_access_context_manager_service_perimeter.this.status).ingress_policies).ingress_from).identities == toset(["user:a@example.org"])
    error_message = "People named may call from outside, nobody else."
  }

  assert {
    condition     = length(google_access_context_manager_service_perimeter.this.spec) == 0 && length(one(google_access_context_manager_service_perimeter.this.status).egress_policies) == 0
    error_message = "It is enforced, and nothing leaves."
  }
}

run "perimeter_as_a_dry_run" {
  command = plan

  module {
    source = "./modules/perimeter"
  }

  variables {
    access_policy  = "123"
    project_number = "123456789012"
    name           = "refinery"
    services       = ["storage.googleapis.com"]
    identities     = ["user:a@example.org"]
    enforce        = false
    read_projects  = ["42"]
    readers        = ["serviceAccount:w@x"]
  }

  assert {
    condition     = length(google_access_context_manager_service_perimeter.this.status) == 0 && google_access_context_manager_service_perimeter.this.use_explicit_dry_run_spec
    error_message = "Nothing is refused yet."
  }

  assert {
    condition = (
      one(one(google_access_context_manager_service_perimeter.this.spec).restricted_services) == "storage.googleapis.com" &&
      one(one(one(google_access_context_manager_service_perimeter.this.spec).ingress_policies).ingress_from).identities == toset(["user:a@example.org"])
    )
    error_message = "The dry run tries the same."
  }

  assert {
    condition = [
      for policy in one(google_access_context_manager_service_perimeter.this.spec).egress_policies :
      "${join(" ", one(policy.egress_from).identities)} ${join(" ", one(policy.egress_to).resources)} ${join(" ", one(one(policy.egress_to).operations).method_selectors[*].method)}"
    ] == ["serviceAccount:w@x projects/42 google.storage.objects.get google.storage.objects.list"]
    error_message = "Workers read objects of the project named, and write nothing there."
  }
}
