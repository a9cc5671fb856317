output "url" {
  description = "What image names begin with."
  value       = "${var.location}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.workers.repository_id}"
}
