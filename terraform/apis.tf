locals {
  apis = toset(concat(
    [
      "artifactregistry.googleapis.com",
      "cloudkms.googleapis.com",
      "cloudresourcemanager.googleapis.com",
      "compute.googleapis.com",
      "containeranalysis.googleapis.com",
      "containerscanning.googleapis.com", # bills of materials; it also scans each image that is pushed
      "dataflow.googleapis.com",
      "dns.googleapis.com",
      "iam.googleapis.com",
      "iamcredentials.googleapis.com",
      "logging.googleapis.com",
      "monitoring.googleapis.com",
      "ondemandscanning.googleapis.com",
      "serviceusage.googleapis.com",
      "storage.googleapis.com",
    ],
    var.ci == null ? [] : ["sts.googleapis.com"],
    var.launcher == null ? [] : ["run.googleapis.com"],
    var.perimeter == null ? [] : ["accesscontextmanager.googleapis.com"],
    var.budget == null ? [] : ["billingbudgets.googleapis.com"],
  ))

  # Those of them that hold or move data, and that VPC Service Controls can guard.
  guarded_apis = toset([
    "artifactregistry.googleapis.com",
    "cloudkms.googleapis.com",
    "compute.googleapis.com",
    "dataflow.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "run.googleapis.com",
    "storage.googleapis.com",
    "sts.googleapis.com",
  ])
}

resource "google_project_service" "this" {
  for_each = local.apis

  project = var.project_id
  service = each.value

  # Other resources of the project may need them.
  disable_on_destroy         = false
  disable_dependent_services = false
}
