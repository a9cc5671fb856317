# A perimeter of VPC Service Controls around the project: its buckets, jobs, images and key answer only to requests that come
# from inside it, or from the identities named, whatever a stolen credential says. Until it is enforced it is a dry run:
# requests that it would refuse are logged, and pass.

locals {
  enforced = var.enforce ? { this = true } : {}
  dry_run  = var.enforce ? {} : { this = true }

  resources  = ["projects/${var.project_number}"]
  services   = sort(var.services)
  identities = sort(distinct(var.identities))

  # Objects of other projects that runs read. Nothing can be written there.
  reading = length(var.read_projects) == 0 ? {} : { this = [for number in var.read_projects : "projects/${number}"] }
  reads   = ["google.storage.objects.get", "google.storage.objects.list"]
}

resource "google_access_context_manager_service_perimeter" "this" {
  parent                    = "accessPolicies/${var.access_policy}"
  name                      = "accessPolicies/${var.access_policy}/servicePerimeters/${replace(var.name, "-", "_")}"
  title                     = var.name
  perimeter_type            = "PERIMETER_TYPE_REGULAR"
  use_explicit_dry_run_spec = !var.enforce

  # The two blocks say the same: what is enforced is what was tried.
  dynamic "status" {
    for_each = local.enforced

    content {
      resources           = local.resources
      restricted_services = local.services

      vpc_accessible_services {
        enable_restriction = true
        allowed_services   = ["RESTRICTED-SERVICES"]
      }

      ingress_policies {
        title = "people and identities from outside"

        ingress_from {
          identities = local.identities

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

      dynamic "egress_policies" {
        for_each = local.reading

        content {
          title = "objects of other projects"

          egress_from {
            identities = var.readers
          }

          egress_to {
            resources = egress_policies.value

            operations {
              service_name = "storage.googleapis.com"

              dynamic "method_selectors" {
                for_each = local.reads

                content {
                  method = method_selectors.value
                }
              }
            }
          }
        }
      }
    }
  }

  dynamic "spec" {
    for_each = local.dry_run

    content {
      resources           = local.resources
      restricted_services = local.services

      vpc_accessible_services {
        enable_restriction = true
        allowed_services   = ["RESTRICTED-SERVICES"]
      }

      ingress_policies {
        title = "people and identities from outside"

        ingress_from {
          identities = local.identities

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

      dynamic "egress_policies" {
        for_each = local.reading

        content {
          title = "objects of other projects"

          egress_from {
            identities = var.readers
          }

          egress_to {
            resources = egress_policies.value

            operations {
              service_name = "storage.googleapis.com"

              dynamic "method_selectors" {
                for_each = local.reads

                content {
                  method = method_selectors.value
                }
              }
            }
          }
        }
      }
    }
  }
}
