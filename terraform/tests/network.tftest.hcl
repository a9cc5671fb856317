# A network from which only Google's APIs can be reached.

mock_provider "google" {
  override_during = plan
}

variables {
  project_id    = "example-project"
  region        = "europe-west4"
  name          = "refinery"
  cidr          = "10.20.0.0/20"
  google_access = "private"
}

run "closed" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = !google_compute_network.this.auto_create_subnetworks
    error_message = "One subnetwork, in one region."
  }

  assert {
    condition     = google_compute_network.this.delete_default_routes_on_create
    error_message = "No default route to the internet."
  }

  assert {
    condition     = google_compute_subnetwork.workers.private_ip_google_access
    error_message = "Machines without a public address reach Google's APIs."
  }

  assert {
    condition     = google_compute_route.google.dest_range == "199.36.153.8/30"
    error_message = "The only route leads to Google's APIs."
  }

  assert {
    condition = (
      google_compute_firewall.workers_in.source_tags == toset(["dataflow"]) &&
      google_compute_firewall.workers_in.target_tags == toset(["dataflow"])
    )
    error_message = "Workers alone talk to workers."
  }

  assert {
    condition     = [for rule in google_compute_firewall.workers_in.allow : "${rule.protocol} ${join(",", rule.ports)}"] == ["tcp 12345-12346"]
    error_message = "Workers exchange data over tcp 12345-12346, no other port is open."
  }

  assert {
    condition     = google_compute_firewall.google_out.destination_ranges == toset(["199.36.153.8/30"])
    error_message = "443 is open to Google's APIs alone."
  }

  assert {
    condition     = [for rule in google_compute_firewall.google_out.allow : "${rule.protocol} ${join(",", rule.ports)}"] == ["tcp 443"]
    error_message = "Google's APIs over TLS."
  }

  assert {
    condition = (
      one(google_compute_firewall.nothing_else_out.deny).protocol == "all" &&
      google_compute_firewall.nothing_else_out.destination_ranges == toset(["0.0.0.0/0"])
    )
    error_message = "Everything else is refused on the way out."
  }

  assert {
    condition     = google_compute_firewall.nothing_else_out.priority > google_compute_firewall.google_out.priority
    error_message = "The refusal comes after what is allowed."
  }

  assert {
    condition     = google_compute_firewall.nothing_else_out.target_tags == null
    error_message = "The refusal holds for every machine of the network."
  }

  assert {
    condition     = alltrue([for zone in google_dns_managed_zone.google : zone.visibility == "private"])
    error_message = "The names are redirected inside the network alone."
  }

  assert {
    condition     = google_dns_record_set.google["*.googleapis.com"].rrdatas == tolist(["199.36.153.8", "199.36.153.9", "199.36.153.10", "199.36.153.11"])
    error_message = "storage.googleapis.com and its like lead to the range that is routed."
  }

  assert {
    condition     = length(google_dns_record_set.google) == 6 && contains(keys(google_dns_record_set.google), "*.pkg.dev")
    error_message = "The registries' names lead there too, or no worker could pull its image."
  }

  assert {
    condition     = output.subnetwork == "https://www.googleapis.com/compute/v1/projects/example-project/regions/europe-west4/subnetworks/refinery-workers"
    error_message = "The subnetwork is named as Dataflow takes it."
  }
}

run "restricted" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    google_access = "restricted"
  }

  assert {
    condition = (
      google_compute_route.google.dest_range == "199.36.153.4/30" &&
      google_compute_firewall.google_out.destination_ranges == toset(["199.36.153.4/30"]) &&
      google_dns_record_set.google["pkg.dev"].rrdatas[0] == "199.36.153.4"
    )
    error_message = "Route, firewall and names agree on the restricted range."
  }
}
