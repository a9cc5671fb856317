variable "project_id" {
  description = "Project of the network."
  type        = string
}

variable "region" {
  description = "Region of the workers."
  type        = string
}

variable "name" {
  description = "Name of the network and of its subnetwork."
  type        = string
}

variable "cidr" {
  description = "Address range of the workers, such as 10.20.0.0/20: one address each, four are reserved."
  type        = string
}

variable "google_access" {
  description = "private: every Google API. restricted: only those that VPC Service Controls can guard."
  type        = string
}
