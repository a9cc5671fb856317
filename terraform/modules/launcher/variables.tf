variable "project_id" {
  description = "Project of the job."
  type        = string
}

variable "location" {
  description = "Region of the job: that of the workers."
  type        = string
}

variable "name" {
  description = "Prefix of the job's name."
  type        = string
}

variable "image" {
  description = "Image of the launcher, made from the same sources as the workers': jobs refuse another."
  type        = string
}

variable "args" {
  description = "Arguments of `refinery`, as launch_command has them."
  type        = list(string)
}

variable "account" {
  description = "E-mail address of the launcher's service account."
  type        = string
}

variable "users" {
  description = "IAM members that may start the job."
  type        = list(string)
}

variable "kms_key" {
  description = "Key that encrypts the job's image and disk."
  type        = string
}

variable "interface" {
  description = "Network, subnetwork and firewall tags of the job."
  type = object({
    network    = string
    subnetwork = string
    tags       = list(string)
  })
}

variable "hours" {
  description = "Hours of one try; Cloud Run ends it then, and the next one resumes."
  type        = number
}

variable "retries" {
  description = "Tries after the first one."
  type        = number
}

variable "memory" {
  description = "Memory of the launcher, such as 8Gi."
  type        = string
}
