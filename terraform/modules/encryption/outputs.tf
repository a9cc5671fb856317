output "key" {
  description = "Full name of the key. Known only once every service agent may use it."
  value       = google_kms_crypto_key.this.id
  depends_on  = [google_kms_crypto_key_iam_member.users]
}
