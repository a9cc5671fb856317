# CI signs in with the token that its platform issues for each run: there is no key that could leak.

locals {
  ci = var.ci == null ? {} : { this = var.ci }
}

resource "google_iam_workload_identity_pool" "ci" {
  for_each = local.ci

  project                   = var.project_id
  workload_identity_pool_id = "${var.name}-ci"
  display_name              = "${var.name} CI"
  description               = "Workflows of ${each.value.owner}/${each.value.repository}"
}

resource "google_iam_workload_identity_pool_provider" "github" {
  for_each = local.ci

  project                            = var.project_id
  workload_identity_pool_id          = google_iam_workload_identity_pool.ci[each.key].workload_identity_pool_id
  workload_identity_pool_provider_id = "github"
  display_name                       = "GitHub Actions"

  # One repository and one branch or tag: the subject of a pull request's token differs. The numeric id too: an abandoned name can be
  # registered by others, its number cannot.
  attribute_condition = "assertion.sub == 'repo:${each.value.owner}/${each.value.repository}:ref:${each.value.ref}' && assertion.repository_id == '${each.value.repository_id}'"

  attribute_mapping = {
    "google.subject"          = "assertion.sub"
    "attribute.repository"    = "assertion.repository"
    "attribute.repository_id" = "assertion.repository_id"
    "attribute.ref"           = "assertion.ref"
  }

  oidc {
    issuer_uri = "https://token.actions.githubusercontent.com"
  }
}

locals {
  ci_principals = {
    for key, ci in local.ci : key => join("/", [
      "principalSet://iam.googleapis.com",
      google_iam_workload_identity_pool.ci[key].name,
      "attribute.repository_id",
      ci.repository_id,
    ])
  }
}

# What docker/build.sh does besides pushing: a scan on demand, and a bill of materials, which Google writes to a bucket of its
# own naming. The condition keeps CI out of all other buckets.
resource "google_project_iam_member" "ci_scans" {
  for_each = local.ci

  project = var.project_id
  role    = "roles/ondemandscanning.admin"
  member  = local.ci_principals[each.key]
}

resource "google_project_iam_member" "ci_writes_bills_of_materials" {
  for_each = local.ci

  project = var.project_id
  role    = "roles/storage.admin"
  member  = local.ci_principals[each.key]

  condition {
    title      = "bills of materials"
    expression = "resource.name.startsWith('projects/_/buckets/artifactanalysis-')"
  }
}

resource "google_service_account_iam_member" "ci_launches" {
  for_each = { for key, ci in local.ci : key => ci if ci.may_launch }

  service_account_id = google_service_account.this["launcher"].name
  role               = "roles/iam.workloadIdentityUser"
  member             = local.ci_principals[each.key]
}
