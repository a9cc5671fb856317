variable "project_id" {
  description = "Project whose jobs are monitored."
  type        = string
}

variable "project_number" {
  description = "Number of that project, for the budget."
  type        = string
}

variable "name" {
  description = "Prefix of the names of alert policies and of the dashboard."
  type        = string
}

variable "job_prefix" {
  description = "Prefix of the names of the jobs."
  type        = string
}

variable "alert_emails" {
  description = "E-mail addresses that receive alerts."
  type        = list(string)
}

variable "dead_letter_ratio" {
  description = "Share of dead letters in a stage above which an alert fires, 0 to 1."
  type        = number
}

variable "no_progress_minutes" {
  description = "Minutes without a new element, with workers running, after which an alert fires."
  type        = number
}

variable "worker_memory_ratio" {
  description = "Share of a worker's memory in use above which an alert fires, 0 to 1."
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
