locals {
  image   = "${module.registry.url}/worker:${var.image_tag}"
  buckets = module.storage.buckets

  # The flags have Beam's own names. The phases' parts go to the work bucket, where they expire: the worker cannot delete
  # from the corpus bucket.
  launch = [
    "refinery refine ${var.recipe}",
    "--input 'gs://${local.buckets["raw"]}/${var.input}'",
    "--set tokenizer.path=gs://${local.buckets["raw"]}/${var.tokenizer}",
    "--output gs://${local.buckets["corpus"]}/${var.corpus}",
    "--work gs://${local.buckets["work"]}/${var.corpus}",
    "--runner DataflowRunner",
    "--project ${var.project_id}",
    "--region ${var.region}",
    "--temp_location gs://${local.buckets["staging"]}/temp",
    "--staging_location gs://${local.buckets["staging"]}/staging",
    "--sdk_container_image ${local.image}",
    "--service_account_email ${module.identity.emails["worker"]}",
    "--subnetwork ${module.network.subnetwork}",
    "--no_use_public_ips",
    "--dataflow_kms_key ${module.encryption.key}",
    "--max_num_workers ${var.max_workers}",
  ]
}

output "launch_command" {
  description = "The command that makes a corpus; run it again to resume."
  value       = join(" \\\n  ", local.launch)
}

output "sign_in_command" {
  description = "The command with which a member of launcher_users signs in as the launcher."
  value       = "gcloud auth application-default login --impersonate-service-account=${module.identity.emails["launcher"]}"
}

output "image_commands" {
  description = "The commands that build and push the workers' image."
  value = join("\n", [
    "gcloud auth configure-docker ${var.region}-docker.pkg.dev --quiet",
    "docker buildx build --platform linux/amd64 --provenance=false --push --tag ${local.image} .",
  ])
}

output "buckets" {
  description = "Names of the buckets, as {raw, staging, work, corpus, rejects}."
  value       = module.storage.buckets
}

output "service_accounts" {
  description = "E-mail addresses of the service accounts, as {launcher, worker, reader}."
  value       = module.identity.emails
}

output "worker_image" {
  description = "Full name of the workers' image."
  value       = local.image
}

output "kms_key" {
  description = "Full name of the key."
  value       = module.encryption.key
}

output "subnetwork" {
  description = "The workers' subnetwork."
  value       = module.network.subnetwork
}

output "ci_provider" {
  description = "Full name of the identity provider with which CI signs in, or null."
  value       = module.identity.ci_provider
}

output "alerts" {
  description = "Names of the alert policies."
  value       = module.monitoring.alerts
}

output "dashboard" {
  description = "Full name of the dashboard of the funnel."
  value       = module.monitoring.dashboard
}

output "public" {
  description = "Bucket, URL and IPv4 address for volunteers, or null."
  value = one([
    for cdn in module.cdn : { bucket = cdn.bucket, url = cdn.url, address = cdn.address }
  ])
}
