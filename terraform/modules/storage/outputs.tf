output "buckets" {
  description = "Names of the buckets, as {raw, staging, work, corpus, rejects}."
  value       = { for purpose, bucket in google_storage_bucket.this : purpose => bucket.name }
}
