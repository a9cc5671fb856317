variable "project_id" {
  description = "Project that holds the key."
  type        = string
}

variable "location" {
  description = "Region of the key ring: that of all resources that the key protects."
  type        = string
}

variable "name" {
  description = "Name of the key ring and of the key."
  type        = string
}

variable "rotation_days" {
  description = "Days after which a new key version becomes the primary one. Old versions stay and keep decrypting."
  type        = number
}

variable "protection_level" {
  description = "SOFTWARE or HSM."
  type        = string
}

variable "users" {
  description = "Service agents that encrypt and decrypt with the key, as {purpose = e-mail address}."
  type        = map(string)
}
