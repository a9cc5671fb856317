# A perimeter of VPC Service Controls around the project: its buckets, jobs, images and key answer only to requests that come
# from inside it, or from the people named, whatever a stolen credential says.

resource "google_access_context_manager_service_perimeter" "this" {
  parent         = "accessPolicies/${var.access_policy}"
  name           = "accessPolicies/${var.access_policy}/servicePerimeters/${replace(var.name, "-", "_")}"
  title          = var.name
  perimeter_type = "PERIMETER_TYPE_REGULAR"

  status {
    resources           = ["projects/${var.project_number}"]
    restricted_services = sort(var.services)

    vpc_accessible_services {
      enable_restriction = true
      allowed_services   = ["RESTRICTED-SERVICES"]
    }

    ingress_policies {
      title = "people and identities from outside"

      ingress_from {
        identities = sort(distinct(var.identities))

        sources {
          access_level = "*"
        }
      }

      ingress_to {
        resources = ["*"]

        operations {
          service_name = "*"
        }
      }
    }
  }
}
