locals {
  apis = toset(concat(
    [
      "artifactregistry.googleapis.com",
      "cloudkms.googleapis.com",
      "cloudresourcemanager.googleapis.com",
      "compute.googleapis.com",
      "dataflow.googleapis.com",
      "dns.googleapis.com",
      "iam.googleapis.com",
      "iamcredentials.googleapis.com",
      "logging.googleapis.com",
      "monitoring.googleapis.com",
      "serviceusage.googleapis.com",
      "storage.googleapis.com",
    ],
    var.ci == null ? [] : ["sts.googleapis.com"],
    var.budget == null ? [] : ["billingbudgets.googleapis.com"],
  ))
}

resource "google_project_service" "this" {
  for_each = local.apis

  project = var.project_id
  service = each.value

  # Other resources of the project may need them.
  disable_on_destroy         = false
  disable_dependent_services = false
}
