# The infrastructure of runs: buckets, identities, key, network, images, alerts. No Dataflow jobs: a finished one would be
# started again by the next apply. They are launched by the command that outputs.tf prints, which module.launcher holds too.

data "google_project" "this" {
  project_id = var.project_id
}

data "google_storage_project_service_account" "this" {
  project    = var.project_id
  depends_on = [google_project_service.this]
}

locals {
  bucket_prefix = coalesce(var.bucket_prefix, "${var.project_id}-${var.name}")
  number        = data.google_project.this.number

  # Service agents of these services in this project, which encrypt on behalf of all users.
  service_agents = merge(
    {
      storage  = data.google_storage_project_service_account.this.email_address
      registry = "service-${local.number}@gcp-sa-artifactregistry.iam.gserviceaccount.com"
      dataflow = "service-${local.number}@dataflow-service-producer-prod.iam.gserviceaccount.com"
      compute  = "service-${local.number}@compute-system.iam.gserviceaccount.com"
    },
    var.launcher == null ? {} : { run = "service-${local.number}@serverless-robot-prod.iam.gserviceaccount.com" },
  )
}

module "encryption" {
  source = "./modules/encryption"

  project_id       = var.project_id
  location         = var.region
  name             = var.name
  rotation_days    = var.key_rotation_days
  protection_level = var.key_protection_level
  users            = local.service_agents

  depends_on = [google_project_service.this]
}

module "storage" {
  source = "./modules/storage"

  project_id            = var.project_id
  location              = var.region
  prefix                = local.bucket_prefix
  kms_key               = module.encryption.key
  staging_days          = var.staging_days
  work_days             = var.work_days
  reject_days           = var.reject_days
  raw_cold              = var.raw_cold
  soft_delete_days      = var.soft_delete_days
  corpus_retention_days = var.corpus_retention_days
}

module "identity" {
  source = "./modules/identity"

  project_id     = var.project_id
  name           = var.name
  buckets        = module.storage.buckets
  launcher_users = var.launcher_users
  reader_users   = var.reader_users
  on_call_users  = var.on_call_users
  ci             = var.ci

  depends_on = [google_project_service.this]
}

module "network" {
  source = "./modules/network"

  project_id    = var.project_id
  region        = var.region
  name          = var.name
  cidr          = var.workers_cidr
  google_access = var.google_access

  depends_on = [google_project_service.this]
}

module "registry" {
  source = "./modules/registry"

  project_id = var.project_id
  location   = var.region
  name       = var.name
  kms_key    = module.encryption.key
  readers    = { worker = module.identity.members["worker"] }
  writers    = var.ci == null ? {} : { ci = module.identity.ci_principal }
}

module "monitoring" {
  source = "./modules/monitoring"

  project_id          = var.project_id
  project_number      = local.number
  name                = var.name
  job_prefix          = "refinery-"
  alert_emails        = var.alert_emails
  dead_letter_ratio   = var.dead_letter_ratio
  no_progress_minutes = var.no_progress_minutes
  worker_memory_ratio = var.worker_memory_ratio
  buckets             = module.storage.buckets
  budget              = var.budget

  depends_on = [google_project_service.this]
}

module "cdn" {
  source   = "./modules/cdn"
  for_each = var.public_domain == null ? {} : { this = var.public_domain }

  project_id = var.project_id
  location   = var.region
  name       = var.name
  bucket     = "${local.bucket_prefix}-public"
  kms_key    = module.encryption.key
  domain     = each.value
  writer     = module.identity.members["launcher"]
  rate       = var.public_rate

  depends_on = [google_project_service.this]
}

module "launcher" {
  source   = "./modules/launcher"
  for_each = var.launcher == null ? {} : { this = var.launcher }

  project_id = var.project_id
  location   = var.region
  name       = var.name
  image      = local.images["launcher"]
  args       = slice(local.words, 1, length(local.words))
  account    = module.identity.emails["launcher"]
  users      = var.launcher_users
  kms_key    = module.encryption.key
  interface  = module.network.launcher_interface
  hours      = each.value.hours
  retries    = each.value.retries
  memory     = each.value.memory

  depends_on = [google_project_service.this, module.registry]
}

module "perimeter" {
  source   = "./modules/perimeter"
  for_each = var.perimeter == null ? {} : { this = var.perimeter }

  access_policy  = each.value.access_policy
  project_number = local.number
  name           = var.name
  services       = [for api in local.guarded_apis : api if contains(local.apis, api)]

  # People call from their own machines, and so does whoever acts as the launcher or the reader; CI and Cloud CDN call from
  # outside, too. A perimeter knows no Kubernetes service account: such a reader fetches its token as a principalSet, or from a
  # cluster inside the perimeter.
  identities = concat(
    each.value.identities,
    [for member in concat(var.launcher_users, var.reader_users, var.on_call_users) : member if !strcontains(member, ".svc.id.goog")],
    [module.identity.members["launcher"], module.identity.members["reader"]],
    var.ci == null ? [] : [module.identity.ci_principal],
    [for cdn in module.cdn : cdn.member],
  )
  enforce       = each.value.enforce
  read_projects = each.value.read_projects
  readers       = [module.identity.members["launcher"], module.identity.members["worker"]]

  depends_on = [google_project_service.this]
}

check "alerts_have_recipients" {
  assert {
    condition     = length(var.alert_emails) > 0
    error_message = "alert_emails is empty: nobody is notified when a job fails."
  }
}

check "cost_is_watched" {
  assert {
    condition     = var.budget != null
    error_message = "budget is null: nobody is notified of the monthly cost."
  }
}
