variable "project_id" {
  description = "Project of the registry."
  type        = string
}

variable "location" {
  description = "Region of the registry: that of the workers, so that pulling an image costs no egress."
  type        = string
}

variable "name" {
  description = "Name of the repository."
  type        = string
}

variable "kms_key" {
  description = "Key that encrypts the images, in the same region."
  type        = string
}

variable "readers" {
  description = "IAM members that may pull, as {purpose = member}."
  type        = map(string)
}

variable "writers" {
  description = "IAM members that may push, as {purpose = member}."
  type        = map(string)
}
