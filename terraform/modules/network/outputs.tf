output "subnetwork" {
  description = "Address of the workers' subnetwork, as Dataflow's --subnetwork takes it."
  value = join("/", [
    "https://www.googleapis.com/compute/v1/projects", var.project_id,
    "regions", var.region,
    "subnetworks", google_compute_subnetwork.workers.name,
  ])
}
