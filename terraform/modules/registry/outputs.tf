output "url" {
  description = "Prefix of image names."
  value       = "${var.location}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.workers.repository_id}"
}
