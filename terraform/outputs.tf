locals {
  images  = { for kind in ["worker", "launcher"] : kind => "${module.registry.url}/${kind}:${var.image_tag}" }
  buckets = module.storage.buckets

  # Jobs have the labels of the other resources, for cost reports.
  label_flags = [for key, value in var.labels : ["--labels", "${key}=${value}"]]

  # The flags have Beam's own names. The phases' parts go to the work bucket, where they expire: the worker cannot delete
  # from the corpus bucket.
  launch = [
    ["refinery", "refine", var.recipe],
    ["--input", "gs://${local.buckets["raw"]}/${var.input}"],
    ["--set", "tokenizer.path=gs://${local.buckets["raw"]}/${var.tokenizer}"],
    ["--output", "gs://${local.buckets["corpus"]}/${var.corpus}"],
    ["--work", "gs://${local.buckets["work"]}/${var.corpus}"],
    ["--runner", "DataflowRunner"],
    ["--project", var.project_id],
    ["--region", var.region],
    ["--temp_location", "gs://${local.buckets["staging"]}/temp"],
    ["--staging_location", "gs://${local.buckets["staging"]}/staging"],
    ["--sdk_container_image", local.images["worker"]],
    ["--service_account_email", module.identity.emails["worker"]],
    ["--subnetwork", module.network.subnetwork],
    ["--no_use_public_ips"],
    ["--dataflow_kms_key", module.encryption.key],
    ["--max_num_workers", tostring(var.max_workers)],
  ]
  words = flatten(concat(local.launch, local.label_flags))

  # A shell would expand what is between these quotes.
  quoted = [for line in concat(local.launch, local.label_flags) : join(" ", [for word in line : can(regex("[*?]", word)) ? "'${word}'" : word])]
}

output "launch_command" {
  description = "The command that makes a corpus; run it again to resume."
  value       = join(" \\\n  ", local.quoted)
}

output "execute_command" {
  description = "The command that starts the launcher in Cloud Run, and prints where its log is; null without one."
  value = one([
    for launcher in module.launcher : "gcloud run jobs execute ${launcher.job} --project ${var.project_id} --region ${var.region}"
  ])
}

output "sign_in_command" {
  description = "The command with which a member of launcher_users signs in as the launcher."
  value       = "gcloud auth application-default login --impersonate-service-account=${module.identity.emails["launcher"]}"
}

output "image_commands" {
  description = "The commands that build, scan and push the images of workers and launcher, in the folder of the Dockerfile."
  value = join("\n", [
    "gcloud auth configure-docker ${var.region}-docker.pkg.dev --quiet",
    "docker/build.sh ${module.registry.url} ${var.image_tag}",
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
  value       = local.images["worker"]
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

output "perimeter" {
  description = "Full name of the perimeter of VPC Service Controls, or null."
  value       = one([for perimeter in module.perimeter : perimeter.perimeter])
}
