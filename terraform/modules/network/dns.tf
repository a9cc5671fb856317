# Inside the network the names of Google's APIs and registries resolve to the range that the route and the firewall allow.

locals {
  domains   = ["googleapis.com", "gcr.io", "pkg.dev"]
  addresses = [for host in range(4) : cidrhost(local.google_range, host)]

  records = {
    for pair in setproduct(local.domains, ["", "*."]) : "${pair[1]}${pair[0]}" => {
      domain = pair[0]
      name   = "${pair[1]}${pair[0]}."
    }
  }
}

resource "google_dns_managed_zone" "google" {
  for_each = toset(local.domains)

  project     = var.project_id
  name        = "${var.name}-${replace(each.value, ".", "-")}"
  dns_name    = "${each.value}."
  description = "Resolves Google's APIs without the internet"
  visibility  = "private"

  private_visibility_config {
    networks {
      network_url = google_compute_network.this.id
    }
  }
}

resource "google_dns_record_set" "google" {
  for_each = local.records

  project      = var.project_id
  managed_zone = google_dns_managed_zone.google[each.value.domain].name
  name         = each.value.name
  type         = "A"
  ttl          = 300
  rrdatas      = local.addresses
}
