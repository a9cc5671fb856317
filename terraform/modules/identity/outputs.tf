output "emails" {
  description = "E-mail addresses of the service accounts, as {launcher, worker, reader}."
  value       = { for purpose, account in google_service_account.this : purpose => account.email }
}

output "members" {
  description = "The service accounts as IAM members, as {launcher, worker, reader}."
  value       = { for purpose, account in google_service_account.this : purpose => account.member }
}

output "ci_principal" {
  description = "CI as an IAM member, or null."
  value       = one(values(local.ci_principals))
}

output "ci_provider" {
  description = "Full name of the identity provider with which CI signs in, or null."
  value       = one(values(google_iam_workload_identity_pool_provider.github)[*].name)
}
