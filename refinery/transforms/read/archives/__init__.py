"""Records of web archives and the HTTP messages in them, before anybody asks whether they are pages."""
