# Who may do what. The table of grants is compared whole: one more right anywhere fails.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id = "example-project"
  name       = "refinery"
  buckets = {
    raw     = "b-raw"
    staging = "b-staging"
    work    = "b-work"
    corpus  = "b-corpus"
    rejects = "b-rejects"
  }
  launcher_users = ["group:data@example.org"]
  reader_users   = []
  on_call_users  = ["group:on-call@example.org"]
  ci             = null
}

override_resource {
  target          = google_service_account.this["launcher"]
  override_during = plan
  values = {
    email  = "launcher@example-project.iam.gserviceaccount.com"
    member = "serviceAccount:l@x"
    name   = "projects/example-project/serviceAccounts/launcher@example-project.iam.gserviceaccount.com"
  }
}

override_resource {
  target          = google_service_account.this["worker"]
  override_during = plan
  values = {
    email  = "worker@example-project.iam.gserviceaccount.com"
    member = "serviceAccount:w@x"
    name   = "projects/example-project/serviceAccounts/worker@example-project.iam.gserviceaccount.com"
  }
}

override_resource {
  target          = google_service_account.this["reader"]
  override_during = plan
  values = {
    email  = "reader@example-project.iam.gserviceaccount.com"
    member = "serviceAccount:r@x"
    name   = "projects/example-project/serviceAccounts/reader@example-project.iam.gserviceaccount.com"
  }
}

override_resource {
  target          = google_iam_workload_identity_pool.ci
  override_during = plan
  values          = { name = "projects/1/locations/global/workloadIdentityPools/refinery-ci" }
}

run "grants" {
  command = plan

  module {
    source = "./modules/identity"
  }

  assert {
    condition     = sort(keys(google_service_account.this)) == tolist(["launcher", "reader", "worker"])
    error_message = "launcher, reader and worker are the accounts."
  }

  assert {
    condition = sort([
      for g in google_storage_bucket_iam_member.this : "${g.bucket} ${g.role}" if g.member == "serviceAccount:w@x"
      ]) == tolist([
      "b-corpus roles/storage.objectCreator",
      "b-corpus roles/storage.objectViewer",
      "b-raw roles/storage.objectViewer",
      "b-staging roles/storage.objectUser",
      "b-work roles/storage.objectCreator",
      "b-work roles/storage.objectViewer",
    ])
    error_message = "The worker creates and reads; it deletes in staging alone."
  }

  assert {
    condition = sort([
      for g in google_storage_bucket_iam_member.this : "${g.bucket} ${g.role}" if g.member == "serviceAccount:l@x"
      ]) == tolist([
      "b-corpus roles/storage.objectCreator",
      "b-corpus roles/storage.objectViewer",
      "b-raw roles/storage.objectViewer",
      "b-rejects roles/storage.objectUser",
      "b-staging roles/storage.legacyBucketReader",
      "b-staging roles/storage.objectUser",
      "b-work roles/storage.objectUser",
    ])
    error_message = "The launcher publishes into the corpus, and clears work and staging."
  }

  assert {
    condition = [
      for g in google_storage_bucket_iam_member.this : "${g.bucket} ${g.role}" if g.member == "serviceAccount:r@x"
    ] == ["b-corpus roles/storage.objectViewer"]
    error_message = "The reader reads the corpus and nothing else."
  }

  assert {
    condition = alltrue([
      for g in google_storage_bucket_iam_member.this :
      contains(["roles/storage.objectCreator", "roles/storage.objectViewer"], g.role) if g.bucket == "b-corpus"
    ])
    error_message = "Nobody has a role that can delete or overwrite in the corpus."
  }

  assert {
    condition = sort([for g in google_project_iam_member.this : "${g.member} ${g.role}"]) == tolist([
      "serviceAccount:l@x roles/dataflow.developer",
      "serviceAccount:l@x roles/monitoring.metricWriter",
      "serviceAccount:l@x roles/serviceusage.serviceUsageConsumer",
      "serviceAccount:r@x roles/serviceusage.serviceUsageConsumer",
      "serviceAccount:w@x roles/dataflow.worker",
    ])
    error_message = "The launcher launches and sends its heartbeat, requests are counted for this project, no more."
  }

  assert {
    condition = sort([for g in google_project_iam_member.on_call : "${g.member} ${g.role}"]) == tolist([
      "group:on-call@example.org roles/dataflow.viewer",
      "group:on-call@example.org roles/logging.viewer",
      "group:on-call@example.org roles/monitoring.viewer",
    ])
    error_message = "Whoever is on call sees jobs, logs and metrics, and no data."
  }

  assert {
    condition     = google_service_account_iam_member.launcher_uses_worker.service_account_id == "projects/example-project/serviceAccounts/worker@example-project.iam.gserviceaccount.com"
    error_message = "The launcher starts jobs as the worker, on that account and not on the project."
  }

  assert {
    condition     = google_service_account_iam_member.launcher_uses_worker.role == "roles/iam.serviceAccountUser"
    error_message = "Acting as the worker takes the role of a user."
  }

  assert {
    condition     = google_service_account_iam_member.launcher_uses_worker.member == "serviceAccount:l@x"
    error_message = "The launcher alone may act as the worker."
  }

  assert {
    condition     = [for g in google_service_account_iam_member.acting : "${g.member} ${g.role}"] == ["group:data@example.org roles/iam.serviceAccountTokenCreator"]
    error_message = "People act as the launcher with their own sign-in."
  }

  assert {
    condition     = length(google_project_iam_member.ci_scans) == 0 && length(google_project_iam_member.ci_writes_bills_of_materials) == 0
    error_message = "Nothing is granted to CI unless a repository is named."
  }

  assert {
    condition     = length(google_iam_workload_identity_pool.ci) == 0 && output.ci_provider == null && output.ci_principal == null
    error_message = "No federation unless a repository is named."
  }
}

run "federation" {
  command = plan

  module {
    source = "./modules/identity"
  }

  variables {
    ci = { owner = "example", repository = "refinery", repository_id = "42", ref = "refs/heads/main", may_launch = false }
  }

  assert {
    condition     = google_iam_workload_identity_pool_provider.github["this"].attribute_condition == "assertion.sub == 'repo:example/refinery:ref:refs/heads/main' && assertion.repository_id == '42'"
    error_message = "One repository, by name and by number, and one branch."
  }

  assert {
    condition     = google_iam_workload_identity_pool_provider.github["this"].oidc[0].issuer_uri == "https://token.actions.githubusercontent.com"
    error_message = "GitHub signs the tokens."
  }

  assert {
    condition     = output.ci_principal == "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/refinery-ci/attribute.repository_id/42"
    error_message = "CI is the set of identities of that repository."
  }

  assert {
    condition = (
      google_project_iam_member.ci_scans["this"].member == output.ci_principal &&
      google_project_iam_member.ci_scans["this"].role == "roles/ondemandscanning.admin"
    )
    error_message = "CI scans the images that it pushed."
  }

  assert {
    condition = (
      google_project_iam_member.ci_writes_bills_of_materials["this"].member == output.ci_principal &&
      google_project_iam_member.ci_writes_bills_of_materials["this"].role == "roles/storage.admin" &&
      one(google_project_iam_member.ci_writes_bills_of_materials["this"].condition).expression == "resource.name.startsWith('projects/_/buckets/artifactanalysis-')"
    )
    error_message = "CI administers the bucket of bills of materials, and no other."
  }

  assert {
    condition     = length(google_service_account_iam_member.ci_launches) == 0
    error_message = "CI does not launch unless it may."
  }
}

run "ci_launches" {
  command = plan

  module {
    source = "./modules/identity"
  }

  variables {
    ci = { owner = "example", repository = "refinery", repository_id = "42", ref = "refs/tags/v1", may_launch = true }
  }

  assert {
    condition     = google_service_account_iam_member.ci_launches["this"].role == "roles/iam.workloadIdentityUser"
    error_message = "CI becomes the launcher by federation."
  }

  assert {
    condition     = google_service_account_iam_member.ci_launches["this"].service_account_id == "projects/example-project/serviceAccounts/launcher@example-project.iam.gserviceaccount.com"
    error_message = "CI becomes the launcher, not the worker."
  }
}

run "other_platforms" {
  command = plan

  module {
    source = "./modules/identity"
  }

  variables {
    launcher_users = ["principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/attribute.team/data"]
    reader_users = [
      "group:training@example.org",
      "serviceAccount:example-project.svc.id.goog[train/loader]",
      "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/example.svc.id.goog/subject/ns/a/sa/b",
    ]
  }

  assert {
    condition = {
      for grant in google_service_account_iam_member.acting : grant.member => grant.role
      } == {
      "group:training@example.org"                                                                                             = "roles/iam.serviceAccountTokenCreator"
      "serviceAccount:example-project.svc.id.goog[train/loader]"                                                               = "roles/iam.workloadIdentityUser"
      "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/example.svc.id.goog/subject/ns/a/sa/b" = "roles/iam.workloadIdentityUser"
      "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/attribute.team/data"              = "roles/iam.workloadIdentityUser"
    }
    error_message = "Identities of other platforms act by federation, people and groups by a token."
  }
}
