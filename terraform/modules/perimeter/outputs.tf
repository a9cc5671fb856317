output "perimeter" {
  description = "Full name of the perimeter."
  value       = google_access_context_manager_service_perimeter.this.name
}

output "identities" {
  description = "IAM members that may call from outside, sorted."
  value       = local.identities
}
