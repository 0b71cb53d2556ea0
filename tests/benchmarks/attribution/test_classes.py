from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attribution.classes import (
    RulesError,
    built_in_rules,
    classify,
    classify_all,
    classify_symbol,
    load_rules,
    rules_with,
)

_KNOWN = {
    # minfer
    "minfer_gemm_q4_K_bt": "q4_K GEMM",
    "minfer_gemm_q6_K_mmq": "q6_K GEMM",
    "minfer_gemv_q8_0": "q8_0 GEMV",
    "minfer_dequantise_q4_K": "weight dequantise",
    "minfer_quantise_q8_1": "activation quantise",
    "minfer_attention_fa": "attention",
    "minfer_rms_norm": "norm",
    "minfer_rope": "rope",
    "minfer_silu_mul": "elementwise",
    "minfer_kv_write": "kv write",
    "minfer_embedding": "embedding",
    "minfer_add_bias": "elementwise",
    "minfer_router_top": "router",
    "minfer_router_group": "router",
    "minfer_moe_combine": "router",
    "minfer_gemm_q4_K_experts_64": "q4_K GEMM",
    "minfer_gemm_q6_K_experts_128": "q6_K GEMM",
    "minfer_gemm_iq4_nl_experts_64": "iq4_nl GEMM",
    "minfer_gemm_bf16_experts_64": "bf16 GEMM",
    "minfer_mmv_q4_K_experts": "q4_K GEMV",
    "minfer_mmv_f16_experts": "f16 GEMV",
    "minfer_attention_fa_512_cap": "attention",
    "minfer_attention_plain_wide": "attention",
    "minfer_attention_decode_wide": "attention",
    # llama.cpp, mangled as CUPTI gives them and demangled as nsys does
    "_Z9mul_mat_qIL9ggml_type12ELi128ELb0EL9ggml_prec30EEvPKcPKi": "q4_K GEMM",
    "void mul_mat_q<(ggml_type)14, 128, false>(char const*, int const*)": "q6_K GEMM",
    "_Z24mul_mat_q_stream_k_fixupIL9ggml_type14ELi128ELb0EL9ggml_prec30EEvPKiS3_PfS4_": "q6_K GEMM",
    "_Z13mul_mat_vec_qIL9ggml_type14ELi1ELb1ELb0ELb0EEvPKvS2_PKi": "q6_K GEMV",
    "void mul_mat_vec_q<(ggml_type)39, 1, false>(void const*)": "mxfp4 GEMV",
    "void mul_mat_vec_f<__half, float, 1, 256>(__half const*)": "f16 GEMV",
    "void mul_mat_f<__half2, 32, 9, 4>(__half2 const*)": "f16 GEMM",
    "_Z17quantize_mmq_q8_1IL18mmq_q8_1_ds_layout1ELb0EEvPKfPKiPvllllliii": "activation quantise",
    "void dequantize_block_q4_K<__half>(void const*, __half*)": "weight dequantise",
    "void flash_attn_ext_f16<128, 128, 8, 8, false, false, false>(char const*)": "attention",
    "_Z25flash_attn_mask_to_KV_maxILi8EEvPK7__half2Piill": "attention",
    "void soft_max_f32<true, 0, 0, __half>(float const*)": "attention",
    "void rms_norm_f32<1024, true, false, false>(float const*)": "norm",
    "void rope_norm<true, false, float, float>(float const*)": "rope",
    "void k_set_rows<float, long, __half>(float const*)": "kv write",
    "void k_get_rows_float<float, float>(float const*)": "embedding",
    "void topk_moe_cuda<128, true>(float const*)": "router",
    "void unary_gated_op_kernel<&op_silu, float>(float const*)": "elementwise",
    "void k_bin_bcast<&op_add, float, float, float, float const*>(float const*)": "elementwise",
    "void cpy_scalar<&cpy_1_scalar<float, __half>>(char const*)": "copy",
    # cuBLAS, cuBLASLt, CUTLASS
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_segment_k_off_kernel__5x_cublas": "bf16 GEMM",
    "ampere_sgemm_128x64_tn": "f32 GEMM",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn": "f16 GEMM",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN": "bf16 GEMM",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT": "f16 GEMM",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_32x6_tn_align8>(T1::Params)": "bf16 GEMM",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(X::Params)": "tf32 GEMM",
    "void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>)": "GEMM",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>(float)": "GEMV",
    # attention libraries
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>(flash::P)": (
        "attention"
    ),
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>(T::Params)": "attention",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_kernel0_0": "attention",
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::Params)": "attention",
    # PyTorch, Triton, vLLM, CuPy
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3>>(int)": (
        "elementwise"
    ),
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)": "norm",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>(X)": "reduction",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, false, false>(float*)": "softmax",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)": "copy",
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, int, unsigned int, 1, 1, -2, true>(X)": "index",
    "void at::native::(anonymous namespace)::upsample_gen2d_aa_out_frame<float, float, X>(T2)": "elementwise",
    "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)": "embedding",
    "magma_sgemmEx_kernel<float, float, float, false, false, 6, 3, 5, 3, 3>": "f32 GEMM",
    "void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>(float const*)": "router",
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0": "norm",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32": "convolution",
    "_w8a8_block_fp8_matmul": "fp8 GEMM",
    "minfer_mmv_iq4_xs": "iq4_xs GEMV",
    "minfer_combine": "router",
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)": "rope",
    "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)": "norm",
    "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(X)": "elementwise",
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, 0>(X)": "kv write",
    "void marlin::Marlin<X>(int4 const*)": "int4 GEMM",
    "triton_poi_fused_add_mul_0": "elementwise",
    "triton_red_fused_native_layer_norm_1": "norm",
    "triton_per_fused_sum_2": "reduction",
    "cupy_copy__float32_float16": "copy",
    "cupy_add__float32_float32_float32": "elementwise",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)": "collective",
}


@pytest.mark.parametrize(("symbol", "expected"), _KNOWN.items())
def test_known_symbols(symbol, expected):
    assert classify(symbol) == expected


def test_an_unknown_symbol_is_unclassified_and_open_to_the_engines_label():
    assert classify("zork_17") == "unclassified"
    assert classify_symbol("zork_17").generic


def test_a_fix_up_is_a_split_of_its_gemm():
    answer = classify_symbol("void mul_mat_q_stream_k_fixup<(ggml_type)12, 128, false>(int const*)")
    assert (answer.name, answer.split, answer.generic) == ("q4_K GEMM", "stream-k fix-up", True)


def test_an_experts_product_gives_way_to_the_engines_label_and_its_routing_does_not():
    assert classify_symbol("minfer_gemm_q4_K_experts_64").generic
    assert not classify_symbol("minfer_router_group").generic


def test_a_library_gemm_is_generic_and_a_dequantise_is_not():
    assert classify_symbol("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT").generic
    assert not classify_symbol("minfer_dequantise_q4_K").generic


def test_the_users_rules_come_first(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text('[[rule]]\nsymbols = ["^zork_(?P<type>q4_K)", "^zork"]\nclass = "zork"\n')
    rules = rules_with(path)
    assert rules[2:] == built_in_rules()
    assert [item.name for item in classify_all(("zork_17", "ampere_sgemm_1"), rules)] == ["zork", "f32 GEMM"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[rule]]\nsymbols = ["("]\nclass = "x"\n', "rule 1: '(' is not a regular expression"),
        ('[[rule]]\nsymbols = ["a"]\nclass = "x"\n[[rule]]\nclass = "y"\n', "rule 2: symbols must be"),
        ('[[rule]]\nsymbols = []\nclass = "x"\n', "rule 1: symbols must be"),
        ('[[rule]]\nsymbols = ["a"]\n', "rule 1: class must be a name"),
        ('[[rule]]\nsymbols = ["a"]\nclass = "{type} GEMM"\n', "needs a group"),
        ('[[rule]]\nsymbols = ["a"]\nclass = "x"\ncolour = 1\n', "unknown key 'colour'"),
        ('[[rule]]\nsymbols = ["a"]\nclass = "x"\ngeneric = "yes"\n', "true or false"),
        ("[[rule]\n", "line 1"),
        ("", "expected [[rule]] tables"),
        ("rule = 3\n", "expected [[rule]] tables"),
        ("rule = [3]\n", "rule 1: expected a table"),
    ],
)
def test_a_bad_rules_file_is_one_line_that_names_the_place(tmp_path: Path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RulesError) as caught:
        load_rules(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_rules_file_is_one_line(tmp_path: Path):
    with pytest.raises(RulesError, match="cannot be read"):
        load_rules(tmp_path / "none.toml")


_GGML_KERNELS = {
    "attention": "diag_mask_inf_f32 flash_attn_combine_results flash_attn_ext_f16 flash_attn_ext_vec "
    "flash_attn_mask_to_KV_max flash_attn_stream_k_fixup_general flash_attn_stream_k_fixup_uniform "
    "flash_attn_tile lightning_indexer_kernel_vec "
    "lightning_indexer_kernel_wmma soft_max_back_f32 soft_max_f32 soft_max_f32_parallelize_cols",
    "activation quantise": "quantize_mmq_mxfp4 quantize_mmq_nvfp4 quantize_mmq_q8_1 quantize_q8_1",
    "collective": "ggml_cuda_ar_add_kernel ggml_cuda_ar_kernel",
    "convolution": "col2im_1d_kernel conv2d_dw_kernel conv2d_kernel conv2d_transpose_kernel conv_transpose_1d_kernel "
    "im2col_3d_kernel im2col_kernel pool2d_nchw_kernel",
    "copy": "concat_cont concat_non_cont convert_unary cpy_f32_q cpy_q_f32 cpy_scalar cpy_scalar_contiguous "
    "cpy_scalar_transpose k_repeat_back pad_f32 pad_reflect_1d_kernel_f32 roll_f32_cuda",
    "elementwise": "acc_f32 add_id_kernel arange_f32 diag_kernel fill_kernel k_bin_bcast k_bin_bcast_unravel "
    "leaky_relu_kernel op_clamp_kernel scale_f32 silu_back_kernel snake_kernel softcap_f32 swiglu_oai_kernel "
    "timestep_embedding_f32 tri_kernel unary_gated_op_kernel unary_op_kernel upscale_f32 upscale_f32_bicubic xielu_kernel",
    "embedding": "k_get_rows k_get_rows_back_float k_get_rows_float k_get_rows_float_vec k_get_rows_kq",
    "GEMM": "get_batch_pointers k_compute_batched_ptrs k_compute_out_prod_ptrs mul_mat_f mul_mat_f_ids mul_mat_q "
    "mul_mat_q_stream_k_fixup mul_mat_vec_f mul_mat_vec_q mul_mat_vec_q_moe",
    "hadamard transform": "fwht_cuda",
    "hyper-connection": "dsv4_hc_comb_f32 dsv4_hc_post_f32 dsv4_hc_pre_f32",
    "kv write": "k_set_rows k_set_rows_quant",
    "logits": "argmax_f32 count_equal cross_entropy_loss_back_f32 cross_entropy_loss_f32",
    "norm": "group_norm_f32 l2_norm_f32 norm_f32 rms_norm_back_f32 rms_norm_f32 rms_norm_mul_rope_f32",
    "optimiser": "opt_step_adamw_f32 opt_step_sgd_f32",
    "reduction": "divide_by_count reduce_rows_f32",
    "rope": "rope_multi rope_neox rope_norm rope_vision",
    "router": "init_indices init_offsets k_argsort_f32_i32 mm_ids_helper topk_moe_cuda",
    "sort and scan": "cumsum_cub_kernel cumsum_kernel",
    "state space": "gated_linear_attn_f32 rwkv_wkv7_f32 rwkv_wkv7_f32_t1_warp_row rwkv_wkv_f32 solve_tri_f32_fast "
    "ssm_conv_f32 ssm_conv_long_token_f32 ssm_scan_f32 ssm_scan_f32_group ssm_ssd_init_state_kernel "
    "ssm_ssd_pre_matmul_kernel ssm_ssd_prepare_dt_kernel ssm_ssd_scale_state_kernel",
    "weight dequantise": "dequantize_block dequantize_block_iq1_m dequantize_block_iq1_s dequantize_block_iq2_s "
    "dequantize_block_iq2_xs dequantize_block_iq2_xxs dequantize_block_iq3_s dequantize_block_iq3_xxs "
    "dequantize_block_iq4_nl dequantize_block_iq4_xs dequantize_block_mxfp4 dequantize_block_nvfp4 dequantize_block_q2_K "
    "dequantize_block_q3_K dequantize_block_q4_0 dequantize_block_q4_1 dequantize_block_q4_K dequantize_block_q5_K "
    "dequantize_block_q6_K dequantize_block_q8_0_f16",
}
"""Every __global__ function of ggml-cuda as of August 2026 (github.com/ggml-org/ggml, commit d99724f2), by bare name."""


@pytest.mark.parametrize(("kernel_class", "functions"), _GGML_KERNELS.items())
def test_every_kernel_of_ggml_cuda(kernel_class, functions):
    names = functions.split()
    assert {name: classify(name) for name in names} == dict.fromkeys(names, kernel_class)
    mangled = [f"_Z{len(name)}{name}PKfPfi" for name in names]
    assert {classify(name) for name in mangled} == {kernel_class}
