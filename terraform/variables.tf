variable "project_id" {
  description = "Google Cloud project, best one that holds nothing else: Dataflow's worker role reads every bucket of its project."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id: 6 to 30 lower-case letters, digits and hyphens are allowed, beginning with a letter."
  }
}

variable "region" {
  description = "Region of buckets, key, images and workers; one for all, so that nothing is paid for crossing regions."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region: a region such as europe-west4 is allowed, not a zone (europe-west4-a) or a multi-region (EU)."
  }
}

variable "name" {
  description = "What the names of everything begin with."
  type        = string
  default     = "refinery"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "name: 3 to 20 lower-case letters, digits and hyphens are allowed, beginning with a letter."
  }

  validation {
    condition     = !startswith(var.name, "gcp-") && !can(regex("goog|g00g", var.name))
    error_message = "name: Google reserves names of identity pools that begin with gcp-, and names of buckets that contain goog."
  }
}

variable "bucket_prefix" {
  description = "Prefix of bucket names, or null for PROJECT-NAME. Bucket names are globally unique."
  type        = string
  default     = null

  validation {
    condition     = var.bucket_prefix == null || can(regex("^[a-z0-9][a-z0-9-]{1,53}[a-z0-9]$", var.bucket_prefix))
    error_message = "bucket_prefix: 3 to 55 lower-case letters, digits and hyphens are allowed."
  }

  validation {
    condition     = var.bucket_prefix == null || !can(regex("goog|g00g|^artifactanalysis-", var.bucket_prefix))
    error_message = "bucket_prefix: Google reserves bucket names that contain goog, or begin with artifactanalysis-."
  }
}

variable "labels" {
  description = "Labels of all resources that support labels, for cost reports."
  type        = map(string)
  default     = {}

  validation {
    condition = alltrue([
      for key, value in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value))
    ])
    error_message = "labels: lower-case letters, digits, _ and - are allowed, at most 63 of them, keys beginning with a letter."
  }
}

# --- storage

variable "staging_days" {
  description = "Days until Dataflow's staging and temporary files are deleted; longer than any job runs."
  type        = number
  default     = 14

  validation {
    condition     = var.staging_days >= 7 && floor(var.staging_days) == var.staging_days
    error_message = "staging_days: a whole number of 7 or more is allowed; a running job needs its staged files."
  }
}

variable "work_days" {
  description = "Days until the phases' parts are deleted; a run can be resumed, traced and reused for as long."
  type        = number
  default     = 60

  validation {
    condition     = var.work_days >= 14 && floor(var.work_days) == var.work_days
    error_message = "work_days: a whole number of 14 or more is allowed; a run that loses its parts starts over."
  }
}

variable "reject_days" {
  description = "Days until files set aside for review are deleted."
  type        = number
  default     = 90

  validation {
    condition     = var.reject_days >= 1 && floor(var.reject_days) == var.reject_days
    error_message = "reject_days: a whole number of 1 or more is allowed; it may hold what people asked to be removed."
  }
}

variable "raw_cold" {
  description = "Days after which raw input moves to a storage class that costs less to keep and more to read; null: never."
  type = object({
    days          = number
    storage_class = string
  })
  default = { days = 30, storage_class = "NEARLINE" }

  validation {
    condition     = var.raw_cold == null || try(var.raw_cold.days >= 1 && floor(var.raw_cold.days) == var.raw_cold.days, false)
    error_message = "raw_cold.days: a whole number of 1 or more is allowed."
  }

  validation {
    condition     = var.raw_cold == null || contains(["NEARLINE", "COLDLINE", "ARCHIVE"], try(var.raw_cold.storage_class, ""))
    error_message = "raw_cold.storage_class: NEARLINE, COLDLINE or ARCHIVE is allowed."
  }
}

variable "soft_delete_days" {
  description = "Days for which a deleted object of the corpus or of the raw input can be restored; it is billed until then."
  type        = number
  default     = 30

  validation {
    condition     = var.soft_delete_days >= 7 && var.soft_delete_days <= 90 && floor(var.soft_delete_days) == var.soft_delete_days
    error_message = "soft_delete_days: a whole number from 7 to 90 is what Cloud Storage allows."
  }
}

variable "corpus_retention_days" {
  description = "Days for which objects of the corpus bucket cannot be deleted by anyone; 0 for no such rule."
  type        = number
  default     = 0

  validation {
    condition     = var.corpus_retention_days >= 0 && var.corpus_retention_days <= 3650 && floor(var.corpus_retention_days) == var.corpus_retention_days
    error_message = "corpus_retention_days: a whole number from 0 to 3650 is allowed."
  }
}

variable "key_rotation_days" {
  description = "Days after which the key gets a new version. Old versions keep decrypting."
  type        = number
  default     = 90

  validation {
    condition     = var.key_rotation_days >= 1 && var.key_rotation_days <= 90 && floor(var.key_rotation_days) == var.key_rotation_days
    error_message = "key_rotation_days: a whole number from 1 to 90 is allowed."
  }
}

variable "key_protection_level" {
  description = "SOFTWARE, or HSM at a higher price. Choose before the first apply: a key keeps its level, and is never replaced."
  type        = string
  default     = "SOFTWARE"

  validation {
    condition     = contains(["SOFTWARE", "HSM"], var.key_protection_level)
    error_message = "key_protection_level: SOFTWARE or HSM is allowed."
  }
}

# --- network

variable "workers_cidr" {
  description = "Address range of the workers: one address each, and Google takes four."
  type        = string
  default     = "10.20.0.0/20"

  validation {
    condition = anytrue([
      for private in ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"] : try(
        tonumber(split("/", var.workers_cidr)[1]) >= tonumber(split("/", private)[1]) && can(cidrhost(var.workers_cidr, 4)) &&
        cidrhost("${split("/", var.workers_cidr)[0]}/${split("/", private)[1]}", 0) == cidrhost(private, 0),
        false,
      )
    ])
    error_message = "workers_cidr: a private range with more than four addresses is allowed, such as 10.20.0.0/20."
  }

  validation {
    condition     = try(cidrhost(var.workers_cidr, 0) == split("/", var.workers_cidr)[0], false)
    error_message = "workers_cidr: a range begins with its first address, such as 10.20.0.0/20, not 10.20.0.1/20."
  }

  validation {
    condition     = try(pow(2, 32 - tonumber(split("/", var.workers_cidr)[1])) - 4 >= var.max_workers, false)
    error_message = "workers_cidr: has fewer addresses than max_workers; take a larger range or fewer workers."
  }
}

variable "google_access" {
  description = "private: workers reach every Google API. restricted: only those that VPC Service Controls can guard."
  type        = string
  default     = "private"

  validation {
    condition     = contains(["private", "restricted"], var.google_access)
    error_message = "google_access: private or restricted is allowed."
  }
}

variable "perimeter" {
  description = "Perimeter of VPC Service Controls: number of the organization's access policy; who calls from outside, above all whoever runs terraform; whether it refuses, or only logs what it would refuse; numbers of other projects that runs read. Null: none."
  type = object({
    access_policy = string
    identities    = list(string)
    enforce       = optional(bool, false)
    read_projects = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.perimeter == null || can(regex("^[0-9]+$", var.perimeter.access_policy))
    error_message = "perimeter.access_policy: the policy's number is allowed (gcloud access-context-manager policies list --organization=ID)."
  }

  validation {
    condition = var.perimeter == null || alltrue([
      for member in try(var.perimeter.identities, []) : can(regex("^(user|group|serviceAccount):[^@ ]+@[^@ ]+$", member)) || (
        can(regex(local.federated, member)) && !strcontains(member, ".svc.id.goog")
      )
    ])
    error_message = "perimeter.identities: user:…, group:… and serviceAccount:… with an address, and principal(Set)://iam.googleapis.com/… are allowed; a perimeter knows no Kubernetes service account."
  }

  validation {
    condition     = var.perimeter == null || length(try(var.perimeter.identities, [])) > 0
    error_message = "perimeter.identities: name whoever runs terraform, or the perimeter locks them out."
  }

  validation {
    condition     = var.perimeter == null || alltrue([for number in try(var.perimeter.read_projects, []) : can(regex("^[0-9]+$", number))])
    error_message = "perimeter.read_projects: numbers of projects are allowed (gcloud projects describe ID --format='value(projectNumber)')."
  }

  validation {
    condition     = var.perimeter == null || var.google_access == "restricted"
    error_message = "perimeter: needs google_access = \"restricted\", or workers reach services that it cannot guard."
  }
}

# --- people and CI

locals {
  # Identities of other platforms: a Kubernetes service account, or a member or a group of an identity pool; no whole pool.
  federated = "^(serviceAccount:[a-z0-9.:-]+\\.svc\\.id\\.goog\\[[a-z0-9-]+/[a-z0-9.-]+\\]|principal://iam\\.googleapis\\.com/.+/subject/[^ *]+|principalSet://iam\\.googleapis\\.com/.+/(attribute\\.[a-z_]+|group|namespace)/[^ *]+)$"
}

variable "launcher_users" {
  description = "Who may launch runs: user:ADDRESS, group:ADDRESS, serviceAccount:ADDRESS, serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME], principal://… or principalSet://…"
  type        = list(string)
  default     = []

  validation {
    condition = alltrue([
      for member in var.launcher_users : can(regex("^(user|group|serviceAccount):[^@ ]+@[^@ ]+$", member)) || can(regex(local.federated, member))
    ])
    error_message = "launcher_users: user:…, group:… and serviceAccount:… with an address, serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME], and principal(Set)://iam.googleapis.com/… are allowed; never allUsers, a domain or a whole pool."
  }
}

variable "reader_users" {
  description = "Who may read finished corpora as the reader; members as in launcher_users, such as a training job's Kubernetes service account."
  type        = list(string)
  default     = []

  validation {
    condition = alltrue([
      for member in var.reader_users : can(regex("^(user|group|serviceAccount):[^@ ]+@[^@ ]+$", member)) || can(regex(local.federated, member))
    ])
    error_message = "reader_users: user:…, group:… and serviceAccount:… with an address, serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME], and principal(Set)://iam.googleapis.com/… are allowed; never allUsers, a domain or a whole pool."
  }
}

variable "on_call_users" {
  description = "Who may look at jobs, logs, metrics and alerts when something fails; they see no data."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.on_call_users : can(regex("^(user|group|serviceAccount):[^@ ]+@[^@ ]+$", member))])
    error_message = "on_call_users: user:…, group:… and serviceAccount:… with an address are allowed; never allUsers or a domain."
  }
}

variable "ci" {
  description = "GitHub repository whose workflows push images, and may launch, without a key; its numeric id; the one ref they run on. Null: none."
  type = object({
    owner         = string
    repository    = string
    repository_id = string
    ref           = optional(string, "refs/heads/main")
    may_launch    = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.ci == null || can(regex("^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$", "${var.ci.owner}/${var.ci.repository}"))
    error_message = "ci.owner, ci.repository: the two halves of OWNER/NAME are allowed, without a wildcard."
  }

  validation {
    condition     = var.ci == null || can(regex("^[0-9]+$", var.ci.repository_id))
    error_message = "ci.repository_id: the repository's number is allowed (gh api repos/OWNER/NAME --jq .id)."
  }

  validation {
    condition     = var.ci == null || can(regex("^refs/(heads|tags)/[A-Za-z0-9._/-]+$", var.ci.ref))
    error_message = "ci.ref: one branch or tag is allowed, such as refs/heads/main; pull requests are not."
  }
}

# --- monitoring and costs

variable "alert_emails" {
  description = "E-mail addresses for alerts on failed or stalled jobs and on costs."
  type        = list(string)

  validation {
    condition     = alltrue([for address in var.alert_emails : can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", address))])
    error_message = "alert_emails: e-mail addresses are allowed."
  }
}

variable "dead_letter_ratio" {
  description = "Share of dead letters in a stage above which an alert fires: half of what makes a run fail (failures.max_ratio)."
  type        = number
  default     = 0.005

  validation {
    condition     = var.dead_letter_ratio > 0 && var.dead_letter_ratio < 1
    error_message = "dead_letter_ratio: a number between 0 and 1 is allowed."
  }
}

variable "no_progress_minutes" {
  description = "Minutes with workers running and no new element in the preceding 15 minutes after which an alert fires."
  type        = number
  default     = 45

  validation {
    condition     = var.no_progress_minutes >= 10 && var.no_progress_minutes <= 1440 && floor(var.no_progress_minutes) == var.no_progress_minutes
    error_message = "no_progress_minutes: a whole number from 10 to 1440 is allowed; workers need some minutes to start."
  }
}

variable "worker_memory_ratio" {
  description = "Share of a worker's memory in use above which an alert fires."
  type        = number
  default     = 0.9

  validation {
    condition     = var.worker_memory_ratio > 0.5 && var.worker_memory_ratio < 1
    error_message = "worker_memory_ratio: a number between 0.5 and 1 is allowed."
  }
}

variable "budget" {
  description = "Billing account (XXXXXX-XXXXXX-XXXXXX), monthly amount and its currency. Null: no budget."
  type = object({
    billing_account = string
    monthly_amount  = number
    currency        = optional(string, "USD")
  })
  default = null

  validation {
    condition     = var.budget == null || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.budget.billing_account))
    error_message = "budget.billing_account: XXXXXX-XXXXXX-XXXXXX is allowed (gcloud billing accounts list)."
  }

  validation {
    condition     = var.budget == null || try(var.budget.monthly_amount >= 1 && floor(var.budget.monthly_amount) == var.budget.monthly_amount, false)
    error_message = "budget.monthly_amount: a whole number of 1 or more is allowed."
  }
}

# --- volunteers

variable "public_domain" {
  description = "Host name of a public bucket behind Cloud CDN, such as data.example.org. Null: nothing is public."
  type        = string
  default     = null

  validation {
    condition     = var.public_domain == null || can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$", var.public_domain))
    error_message = "public_domain: a host name such as data.example.org is allowed, without https:// and without a wildcard."
  }
}

variable "public_rate" {
  description = "Requests a minute and address that volunteers' readers may make of the load balancer beyond its cache; above it they get 429."
  type        = number
  default     = 6000

  validation {
    condition     = var.public_rate >= 1 && var.public_rate <= 1000000 && floor(var.public_rate) == var.public_rate
    error_message = "public_rate: a whole number from 1 to 1000000 is allowed."
  }
}

# --- the launcher in Cloud Run

variable "launcher" {
  description = "The launch command as a job of Cloud Run, once its image is pushed: hours and number of tries, memory. Null: none."
  type = object({
    hours   = optional(number, 24)
    retries = optional(number, 3)
    memory  = optional(string, "8Gi")
  })
  default = null

  validation {
    condition     = var.launcher == null || try(var.launcher.hours >= 1 && var.launcher.hours <= 168 && floor(var.launcher.hours) == var.launcher.hours, false)
    error_message = "launcher.hours: a whole number from 1 to 168 is what Cloud Run allows."
  }

  validation {
    condition     = var.launcher == null || try(var.launcher.retries >= 0 && var.launcher.retries <= 10 && floor(var.launcher.retries) == var.launcher.retries, false)
    error_message = "launcher.retries: a whole number from 0 to 10 is allowed."
  }

  validation {
    condition     = var.launcher == null || can(regex("^([1-8])Gi$", var.launcher.memory))
    error_message = "launcher.memory: 1Gi to 8Gi is what Cloud Run allows with 2 CPUs."
  }
}

# --- the launch command that is printed

variable "recipe" {
  description = "Recipe in the launch command: in this checkout, or gs://."
  type        = string
  default     = "recipes/web.yaml"

  validation {
    condition     = can(regex("^(gs://)?[A-Za-z0-9._/=-]+$", var.recipe))
    error_message = "recipe: a path without spaces and quotes is allowed, since a shell reads the launch command."
  }
}

variable "input" {
  description = "Files in the raw bucket that the launch command reads; a pattern."
  type        = string
  default     = "crawl/*.warc.gz"

  validation {
    condition     = can(regex("^[A-Za-z0-9*?._/=-]+$", var.input)) && !startswith(var.input, "/")
    error_message = "input: a pattern inside the raw bucket is allowed, such as crawl/*.warc.gz, without spaces, quotes or a leading slash."
  }
}

variable "tokenizer" {
  description = "Tokenizer in the raw bucket that the launch command names."
  type        = string
  default     = "tokenizer/tokenizer.json"

  validation {
    condition     = can(regex("^[A-Za-z0-9._/=-]+$", var.tokenizer)) && !startswith(var.tokenizer, "/")
    error_message = "tokenizer: an object inside the raw bucket is allowed, such as tokenizer/tokenizer.json, without a leading slash."
  }
}

variable "corpus" {
  description = "Name of the corpus in the launch command. A corpus is immutable: choose another for every run."
  type        = string
  default     = "web-001"

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,62}$", var.corpus))
    error_message = "corpus: lower-case letters, digits and hyphens are allowed."
  }
}

variable "image_tag" {
  description = "Tag of the workers' image in the launch command. Tags are immutable: a new image is a new tag."
  type        = string
  default     = "0.1.0"

  validation {
    condition     = can(regex("^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$", var.image_tag)) && var.image_tag != "latest"
    error_message = "image_tag: a descriptive tag is allowed; latest is not."
  }
}

variable "max_workers" {
  description = "Maximum number of machines of a job, which bounds the cost per hour."
  type        = number
  default     = 50

  validation {
    condition     = var.max_workers >= 1 && var.max_workers <= 4000 && floor(var.max_workers) == var.max_workers
    error_message = "max_workers: a whole number from 1 to 4000 is allowed."
  }
}
