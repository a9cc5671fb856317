# A network with access to Google's APIs only: no public address, no NAT, no default route. A worker can neither fetch
# anything from the internet nor send anything there.

locals {
  # The tag that Dataflow puts on its workers, and the ports over which they exchange data.
  worker_tag    = "dataflow"
  launcher_tag  = "launcher"
  shuffle_ports = ["12345-12346"]

  # The two fixed address ranges through which Google's APIs are reached without the internet.
  google_ranges = {
    private    = "199.36.153.8/30"
    restricted = "199.36.153.4/30"
  }
  google_range = local.google_ranges[var.google_access]
}

resource "google_compute_network" "this" {
  project                         = var.project_id
  name                            = var.name
  auto_create_subnetworks         = false
  delete_default_routes_on_create = true
  routing_mode                    = "REGIONAL"
}

resource "google_compute_subnetwork" "workers" {
  # checkov:skip=CKV_GCP_76: there is no IPv6 in this subnetwork at all (stack_type)
  project                  = var.project_id
  name                     = "${var.name}-workers"
  region                   = var.region
  network                  = google_compute_network.this.id
  ip_cidr_range            = var.cidr
  private_ip_google_access = true
  stack_type               = "IPV4_ONLY"

  log_config {
    aggregation_interval = "INTERVAL_15_MIN"
    flow_sampling        = 0.1
    metadata             = "EXCLUDE_ALL_METADATA"
  }
}

resource "google_compute_route" "google" {
  project          = var.project_id
  name             = "${var.name}-google-apis"
  description      = "The only way out: the addresses of Google's APIs"
  network          = google_compute_network.this.id
  dest_range       = local.google_range
  next_hop_gateway = "default-internet-gateway"
}

resource "google_compute_firewall" "workers_in" {
  project     = var.project_id
  name        = "${var.name}-workers-in"
  description = "Workers exchange shuffled data with each other"
  network     = google_compute_network.this.id
  direction   = "INGRESS"
  priority    = 1000
  source_tags = [local.worker_tag]
  target_tags = [local.worker_tag]

  allow {
    protocol = "tcp"
    ports    = local.shuffle_ports
  }
}

resource "google_compute_firewall" "workers_out" {
  project            = var.project_id
  name               = "${var.name}-workers-out"
  description        = "Workers exchange shuffled data with each other"
  network            = google_compute_network.this.id
  direction          = "EGRESS"
  priority           = 1000
  target_tags        = [local.worker_tag]
  destination_ranges = [var.cidr]

  allow {
    protocol = "tcp"
    ports    = local.shuffle_ports
  }
}

resource "google_compute_firewall" "google_out" {
  project            = var.project_id
  name               = "${var.name}-google-out"
  description        = "Workers, and a launcher in this network, reach Google's APIs"
  network            = google_compute_network.this.id
  direction          = "EGRESS"
  priority           = 1000
  target_tags        = [local.worker_tag, local.launcher_tag]
  destination_ranges = [local.google_range]

  allow {
    protocol = "tcp"
    ports    = ["443"]
  }
}

resource "google_compute_firewall" "nothing_else_out" {
  project            = var.project_id
  name               = "${var.name}-nothing-else-out"
  description        = "Everything that is not allowed above; each attempt is logged"
  network            = google_compute_network.this.id
  direction          = "EGRESS"
  priority           = 65534
  destination_ranges = ["0.0.0.0/0"]

  deny {
    protocol = "all"
  }

  log_config {
    metadata = "INCLUDE_ALL_METADATA"
  }
}
