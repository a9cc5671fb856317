variable "access_policy" {
  description = "Number of the organization's access policy."
  type        = string
}

variable "project_number" {
  description = "Number of the project inside the perimeter."
  type        = string
}

variable "name" {
  description = "Title of the perimeter, and its name with _ for -."
  type        = string
}

variable "services" {
  description = "APIs that only answer inside the perimeter."
  type        = list(string)
}

variable "identities" {
  description = "IAM members that may call them from outside, from any network: user:…, group:…, serviceAccount:… and principal(Set)://…"
  type        = list(string)
}

variable "enforce" {
  description = "Whether requests from outside are refused; otherwise they are logged as refused, and pass."
  type        = bool
}

variable "read_projects" {
  description = "Numbers of other projects whose objects `readers` may read from inside."
  type        = list(string)
}

variable "readers" {
  description = "IAM members that read objects of `read_projects`."
  type        = list(string)
}
