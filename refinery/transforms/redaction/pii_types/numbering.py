"""Numbering plans: which digits can be a telephone number, by the metadata of the `phonenumbers` library.

Sources: ITU-T E.164; Google's libphonenumber, which collects the plans of all countries. The library is loaded at the
first number that needs it (0.2 s); an international number costs 20 µs, a national one 2 µs: the patterns of all
regions with the same trunk prefix are one RE2 set.
"""

from functools import lru_cache
from typing import Any

import re2

from refinery.transforms.redaction.pii_types.scan import byte_options

SCOPES = ("general_desc", "mobile")


def is_international(digits: str) -> bool:
    """Whether country code and length agree: "4930123456". Its range need not be in use: plans grow."""
    import phonenumbers

    try:
        number = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE


def is_north_american(digits: str) -> bool:
    """Whether ten digits are in an area of the North American Numbering Plan that is in use."""
    import phonenumbers

    return phonenumbers.is_valid_number(phonenumbers.parse("+1" + digits))


def is_national(digits: bytes, scope: str = "general_desc") -> bool:
    """Whether digits behind the trunk prefix 0 are a number of some region that has this prefix.

    scope: "mobile" for only mobile numbers.
    """
    return bool(_plans(scope).Match(digits))


@lru_cache(maxsize=len(SCOPES))
def _plans(scope: str) -> Any:
    """The patterns of all regions with the trunk prefix 0."""
    import phonenumbers
    from phonenumbers.phonemetadata import PhoneMetadata

    patterns = set()
    for region in phonenumbers.SUPPORTED_REGIONS:
        metadata = PhoneMetadata.metadata_for_region(region)
        if metadata is None:
            continue
        if metadata.national_prefix == "0" and (found := getattr(metadata, scope)) is not None:
            patterns.add(found.national_number_pattern)
    plans = re2.Set.FullMatchSet(byte_options())
    for pattern in sorted(filter(None, patterns)):
        plans.Add(pattern.encode())
    plans.Compile()
    return plans
