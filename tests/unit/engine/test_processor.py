"""Processors as their systems describe them."""

from __future__ import annotations

from t2n_core.engine.processor import parse_cpuinfo, parse_sysctl, this_processor

X86 = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 26
model		: 2
model name	: AMD EPYC
stepping	: 1
flags		: fpu smep sse2 avx avx2 fma f16c avx512f tsc

processor	: 1
vendor_id	: AuthenticAMD
model name	: AMD EPYC
flags		: fpu smep sse2 avx avx2 fma f16c tsc_known_freq
"""
ARM = """processor	: 0
BogoMIPS	: 243.75
Features	: fp asimd evtstrm fphp asimdhp asimddp sve2
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd4f
"""


def test_x86_has_the_vector_features_of_all_its_cores() -> None:
    processor = parse_cpuinfo(X86, 2)
    assert (processor.vendor, processor.model) == ("AuthenticAMD", "AMD EPYC, family 26 model 2 stepping 1")
    assert processor.features == ("avx", "avx2", "f16c", "fma", "sse2")
    assert processor.cores == 2


def test_arm_has_a_part_number_for_a_name() -> None:
    processor = parse_cpuinfo(ARM, 8)
    assert (processor.vendor, processor.model) == ("ARM", "part 0xd4f variant 0x1")
    assert processor.features == ("asimd", "asimddp", "asimdhp", "fp", "fphp", "sve2")


def test_macs() -> None:
    intel = {
        "machdep.cpu.vendor": "GenuineIntel",
        "machdep.cpu.brand_string": "Intel(R) Core(TM) i7",
        "machdep.cpu.features": "FPU SSE2 FMA AVX1.0 F16C",
        "machdep.cpu.leaf7_features": "AVX2 AVX512F",
    }
    assert parse_sysctl(intel, 8).features == ("avx", "avx2", "avx512f", "f16c", "fma", "sse2")
    apple = {"machdep.cpu.brand_string": "Apple M4", "hw.optional.arm.FEAT_FP16": "1", "hw.optional.arm.FEAT_SME": "0"}
    processor = parse_sysctl(apple, 10)
    assert (processor.vendor, processor.features) == ("Apple", ("apple-amx", "fp16"))


def test_this_machine_has_a_processor() -> None:
    assert this_processor().cores > 0
    assert this_processor() is this_processor()
