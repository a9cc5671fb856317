terraform {
  required_version = ">= 1.11.0"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.0"
    }
  }

  # The state is local until you configure a bucket: see "State" in README.md.
}

provider "google" {
  project = var.project_id
  region  = var.region

  # Budgets are billed to a project, which must be named with user credentials.
  user_project_override = true
  billing_project       = var.project_id

  default_labels = merge(var.labels, { managed-by = "terraform", system = var.name })
}
