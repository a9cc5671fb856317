output "subnetwork" {
  description = "Address of the workers' subnetwork, as Dataflow's --subnetwork takes it."
  value = join("/", [
    "https://www.googleapis.com/compute/v1/projects", var.project_id,
    "regions", var.region,
    "subnetworks", google_compute_subnetwork.workers.name,
  ])
}

output "launcher_interface" {
  description = "Network, subnetwork and tags of a launcher in this network, as {network, subnetwork, tags}."
  value = {
    network    = google_compute_network.this.id
    subnetwork = google_compute_subnetwork.workers.id
    tags       = [local.launcher_tag]
  }
}
