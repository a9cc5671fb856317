output "bucket" {
  description = "Name of the public bucket."
  value       = google_storage_bucket.public.name
}

output "url" {
  description = "Base URL for volunteers' readers."
  value       = "https://${var.domain}"
}

output "address" {
  description = "IPv4 address that the host name must point to before the certificate is issued."
  value       = google_compute_global_address.public.address
}

output "member" {
  description = "Cloud CDN as an IAM member: the account that reads the bucket for everybody."
  value       = google_service_account.cdn.member
}
