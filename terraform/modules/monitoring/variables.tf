variable "project_id" {
  description = "Project whose jobs are watched."
  type        = string
}

variable "project_number" {
  description = "Number of that project, which a budget names."
  type        = string
}

variable "name" {
  description = "What the names of alert policies and of the dashboard begin with."
  type        = string
}

variable "job_prefix" {
  description = "What the names of the jobs begin with."
  type        = string
}

variable "alert_emails" {
  description = "Who is told."
  type        = list(string)
}

variable "dead_letter_ratio" {
  description = "Share of dead letters in a stage above which somebody is told, 0 to 1."
  type        = number
}

variable "no_progress_minutes" {
  description = "Minutes without a new element, with workers running, after which somebody is told."
  type        = number
}

variable "worker_memory_ratio" {
  description = "Share of a worker's memory in use above which somebody is told, 0 to 1."
  type        = number
}

variable "buckets" {
  description = "Names of the buckets whose size the dashboard shows."
  type        = map(string)
}

variable "budget" {
  description = "Billing account and monthly amount, or null for no budget."
  type = object({
    billing_account = string
    monthly_amount  = number
    currency        = string
  })
}
