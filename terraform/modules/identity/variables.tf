variable "project_id" {
  description = "Project of the service accounts."
  type        = string
}

variable "name" {
  description = "Prefix of the accounts' names."
  type        = string
}

variable "buckets" {
  description = "Names of the buckets, as {raw, staging, work, corpus, rejects}."
  type = object({
    raw     = string
    staging = string
    work    = string
    corpus  = string
    rejects = string
  })
}

variable "launcher_users" {
  description = "Who may act as the launcher: user:…, group:…, serviceAccount:… or principal(Set)://…"
  type        = list(string)
}

variable "reader_users" {
  description = "Who may act as the reader: user:…, group:…, serviceAccount:… or principal(Set)://…"
  type        = list(string)
}

variable "on_call_users" {
  description = "Who may look at jobs, logs and metrics: user:…, group:… or serviceAccount:…"
  type        = list(string)
}

variable "ci" {
  description = "The repository whose workflows may sign in without a key, or null."
  type = object({
    owner         = string
    repository    = string
    repository_id = string
    ref           = string
    may_launch    = bool
  })
}
