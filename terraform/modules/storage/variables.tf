variable "project_id" {
  description = "Project that holds the buckets."
  type        = string
}

variable "location" {
  description = "Region of the buckets: that of the workers, so that reading costs no egress."
  type        = string
}

variable "prefix" {
  description = "Prefix of bucket names, which are globally unique."
  type        = string
}

variable "kms_key" {
  description = "Key that encrypts every object, in the same region."
  type        = string
}

variable "staging_days" {
  description = "Days until Dataflow's staging and temporary files are deleted."
  type        = number
}

variable "work_days" {
  description = "Days until the phases' parts are deleted; a run can be resumed and reused for as long."
  type        = number
}

variable "reject_days" {
  description = "Days until files set aside for review are deleted."
  type        = number
}

variable "raw_cold" {
  description = "Days after which raw input moves to a colder storage class, and that class; null: never."
  type = object({
    days          = number
    storage_class = string
  })
}

variable "soft_delete_days" {
  description = "Days for which a deleted object of the corpus or of the raw input can be restored."
  type        = number
}

variable "corpus_retention_days" {
  description = "Days for which objects of the corpus bucket cannot be deleted by anyone; 0 for no such rule."
  type        = number
}
