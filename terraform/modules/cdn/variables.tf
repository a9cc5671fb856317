variable "project_id" {
  description = "Project of the public bucket."
  type        = string
}

variable "location" {
  description = "Region of the public bucket."
  type        = string
}

variable "name" {
  description = "Prefix of the names of the load balancer's parts."
  type        = string
}

variable "bucket" {
  description = "Name of the public bucket."
  type        = string
}

variable "kms_key" {
  description = "Key that encrypts every object, in the same region."
  type        = string
}

variable "domain" {
  description = "Host name under which volunteers read, such as data.example.org."
  type        = string
}

variable "writer" {
  description = "IAM member that copies a finished corpus into the public bucket."
  type        = string
}

variable "rate" {
  description = "Requests a minute and address that go beyond the cache."
  type        = number
}
